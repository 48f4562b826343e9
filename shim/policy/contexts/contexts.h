// The contexts that this process has seen, and which of them have ended.
// Layer: policy/contexts. Threads: any; driver calls outside the lock.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <limits>
#include <memory>
#include <unordered_map>
#include <vector>

#include "base/held.h"
#include "base/lock.h"
#include "base/reentrant_gate.h"
#include "driver/functions.h"
#include "policy/devices/devices.h"

namespace ration::policy {

// What a context knows of its pool.
class PoolOfContext {
 public:
  // Returns once no hit is in the pool any more.
  virtual void close_to_hits() noexcept = 0;
  // The context object ends. REQUIRES: close_to_hits() came before.
  virtual void release() noexcept = 0;

 protected:
  ~PoolOfContext() = default;
};

// The other devices whose memory the work of a context may use, peer access apart. A call that submits such work enters
// before it and leaves behind it; the device counts until everything that was submitted by then has finished.
class Reach {
 public:
  static constexpr int kAllDevices = ledger::kMaxDevices;
  static constexpr std::uint64_t kForEver = std::numeric_limits<std::uint64_t>::max();

  void enter(int device) noexcept {
    raise(device, kEntered);
    inside_.fetch_add(1);
  }
  // `number`: of a fence that was taken now (Contexts::tick); 0: the call submitted nothing. A call that never leaves
  // counts for ever.
  void leave(int device, std::uint64_t number) noexcept {
    raise(device, number);
    inside_.fetch_sub(1);
  }
  void add_for_ever(int device) noexcept { raise(device, kForEver); }
  // The number of the fence with which the device no longer counts; 0: it does not. A thread that frees a block comes
  // after the calls that used it.
  std::uint64_t until(int device) const noexcept {
    const bool inside = inside_.load() != 0;  // before the number that such a call leaves
    const std::uint64_t until = std::max(until_[device].load(), until_[kAllDevices].load());
    return until == 0 ? 0 : inside ? kForEver : until == kEntered ? 0 : until;
  }

 private:
  static constexpr std::uint64_t kEntered = 1;
  void raise(int device, std::uint64_t number) noexcept {
    std::uint64_t before = until_[device].load();
    while (before < number && !until_[device].compare_exchange_weak(before, number)) {
    }
  }
  std::atomic<int> inside_{0};
  std::atomic<std::uint64_t> until_[ledger::kMaxDevices + 1] = {};  // 0: never noted
};

// One life of a context; a handle that the driver reuses gets a new one.
struct Context {
  CUcontext handle = nullptr;
  unsigned number = 0;  // order of appearance, from 1; 0 if the driver does not say which context is current
  int device = 0;
  std::atomic<const char *> ended_by{nullptr};  // the call that destroyed it
  // Everything that was submitted to it before the fence of this number (fence_tracker.h) has finished.
  std::atomic<std::uint64_t> passed{0};
  Reach reach;
  // Its handle means another context now, or none: no hit may use this one's pool.
  std::atomic<bool> renamed{false};
  // Its pool; made at the first allocation, for the rest of its life.
  std::atomic<PoolOfContext *> pool{nullptr};

  Context() = default;
  ~Context();
  Context(const Context &) = delete;
  Context &operator=(const Context &) = delete;

  // Prevents its destruction during a driver call of ours that names it. False: it is being destroyed, or has ended.
  bool pin();
  void unpin() {
    if (held::forget(drop_pin, this)) {
      drop_pin(this);
    }
  }
  // Waits until no pin is left, and admits none until refuse_end(). The program's call that ends it comes between.
  void begin_end();
  void refuse_end() {
    ending_.fetch_sub(1);
    wake_waiters();
  }
  bool is_ending() const { return ending_.load() != 0; }
  // Whether the fast path of its pool may open. A thread that sets one of these three closes the fast path afterwards;
  // a thread that opens it has published the pool before: all seq_cst, so one of the two sees the other.
  bool may_be_hit() const { return ending_.load() == 0 && ended_by.load() == nullptr && !renamed.load(); }
  // Returns once no hit is in its pool any more.
  void close_to_hits() noexcept;

 private:
  static void drop_pin(void *context) noexcept {
    static_cast<Context *>(context)->pins_.fetch_sub(1);
    wake_waiters();
  }

  // A thread that pins counts first and then looks, a thread that ends it does the reverse: seq_cst, so one of the two
  // sees the other.
  std::atomic<int> pins_{0};
  std::atomic<int> ending_{0};
};
using ContextRef = std::shared_ptr<Context>;

class Pin {
 public:
  explicit Pin(Context &context) : context_(context.pin() ? &context : nullptr) {}
  ~Pin() {
    if (context_ != nullptr) {
      context_->unpin();
    }
  }
  Pin(const Pin &) = delete;
  Pin &operator=(const Pin &) = delete;
  explicit operator bool() const { return context_ != nullptr; }

 private:
  Context *const context_;
};

// Makes a context current during its own lifetime, unless it is already. REQUIRES: the context is pinned, or the
// program itself just named it.
class CurrentFor {
 public:
  explicit CurrentFor(CUcontext context);
  ~CurrentFor();
  CurrentFor(const CurrentFor &) = delete;
  CurrentFor &operator=(const CurrentFor &) = delete;
  explicit operator bool() const { return error_ == CUDA_SUCCESS; }
  CUresult error() const { return error_; }

 private:
  static void pop(void *) noexcept;
  static void set_again(void *before) noexcept;

  CUresult error_ = CUDA_SUCCESS;
  CUcontext before_ = nullptr;
  held::Release restore_ = nullptr;  // nullptr: nothing was changed
};

class Contexts {
 public:
  explicit Contexts(Devices &devices) : devices_(devices) {}

  // One call at a time that retains, releases or resets a device's primary context: its handle stays the same, so only
  // the order of the calls tells one life from the next. A gate, not a lock: it spans the driver's call, and a thread
  // that is called back by the driver is inside already.
  // Design: design/quarantine.md#primary-contexts
  class PrimaryGate : public ReentrantGate {
   public:
    PrimaryGate(Contexts &contexts, int device) : ReentrantGate(contexts.primary_gates_[device]) {}
  };

  // The context of the calling thread; under a green context its device's primary one, whose memory it uses. If nothing
  // is current, `error` is the answer to a call that needs a context; if the driver serves the call all the same, it is
  // charged to the first device: the strictest reading.
  // Design: design/first-use.md#no-context
  struct Current {
    ContextRef context;
    int device = 0;
    CUresult error = CUDA_SUCCESS;
  };
  Current current();
  // What the driver would answer to a free on this thread: its refusal without a context or after its own end.
  CUresult state_of_caller();

  ContextRef find(CUcontext handle);
  // The context that the stream belongs to; a default stream is the current context's.
  ContextRef of_stream(CUstream stream);
  // A context that is current, was just created (a new life, even while the former owner of the handle is still being
  // forgotten), or was retained as `device`'s primary one.
  ContextRef note(CUcontext handle, int device);
  ContextRef note_created(CUcontext handle, int device);
  ContextRef note_primary(CUcontext handle, int device);
  ContextRef primary_of(int device);
  // `handle` came from `green`: it uses the memory of `device`'s primary context.
  void note_green(CUcontext handle, CUgreenCtx green, int device);
  void forget_green(CUgreenCtx green);
  bool is_green(CUcontext handle);
  // Whether work of the context may use memory of the device (device_reach.h): it is of that device, was given peer
  // access to it, or took part in a copy that may not have ended. The notes come before the driver's call that makes it
  // possible.
  bool may_reach(const Context &context, int device) const {
    return may_reach_at_any_time(context, device) ||
           context.passed.load(std::memory_order_acquire) < context.reach.until(device);
  }
  // The same, calls apart that note their reach.
  bool may_reach_at_any_time(const Context &context, int device) const {
    return context.device == device || peers_[context.device][device].load(std::memory_order_relaxed) ||
           anywhere_.load(std::memory_order_relaxed);
  }
  void note_peer(int from, int to) noexcept { peers_[from][to].store(true, std::memory_order_relaxed); }
  // What work reaches is no longer known.
  void note_anywhere() noexcept { anywhere_.store(true, std::memory_order_relaxed); }
  // Numbers fences, and the ends of calls whose work reaches another device, in one order, from 2.
  std::uint64_t tick() noexcept { return clock_.fetch_add(1) + 1; }
  std::uint64_t now() const noexcept { return clock_.load(); }
  // Whether contexts of several devices were seen.
  bool on_several_devices() const noexcept { return several_devices_.load(std::memory_order_relaxed); }
  // Every context that is alive; green ones are part of their primary one.
  std::vector<ContextRef> live();
  // The driver says that `api` destroyed it: no block may be entered for it from now on.
  void forget(const ContextRef &context, const char *api);
  // The same, if we did not see its end; the thread that takes it releases what it held.
  void forget_unseen(const ContextRef &context) noexcept;
  std::vector<ContextRef> take_ended_unseen();
  bool has_ended_unseen() const noexcept { return has_ended_unseen_.load(std::memory_order_relaxed); }

  // References that the program holds: cuCtxAttach/Detach on a context, retain/release on a device's primary one.
  int add_reference(CUcontext handle, int change);
  int add_primary_reference(int device, int change);

 private:
  enum class Seen { from_birth, later };
  ContextRef note_locked(CUcontext handle, int device, Seen seen) REQUIRES(mutex_);
  void take_handle_away(CUcontext handle) REQUIRES(mutex_);
  void note_ended_unseen(const ContextRef &context) noexcept REQUIRES(mutex_);

  Devices &devices_;
  ReentrantGate::Owner primary_gates_[ledger::kMaxDevices] = {};
  RankedMutex mutex_{Rank::kContexts};
  std::unordered_map<CUcontext, ContextRef> contexts_ GUARDED_BY(mutex_);
  std::vector<ContextRef> ended_unseen_ GUARDED_BY(mutex_);
  std::atomic<bool> has_ended_unseen_{false};
  std::unordered_map<CUcontext, int> references_ GUARDED_BY(mutex_);
  std::unordered_map<int, CUcontext> primaries_ GUARDED_BY(mutex_);
  std::unordered_map<int, int> primary_references_ GUARDED_BY(mutex_);
  struct Green {
    CUgreenCtx green;
    int device;
  };
  std::unordered_map<CUcontext, Green> green_ GUARDED_BY(mutex_);
  unsigned last_number_ GUARDED_BY(mutex_) = 0;
  int first_device_ GUARDED_BY(mutex_) = -1;
  std::atomic<bool> several_devices_{false};
  std::atomic<std::uint64_t> clock_{1};
  // Of contexts of one device, the other. By device, not by context: a driver's pool opens to a device as a whole.
  // Relaxed: a thread that frees a block comes after the calls that used it.
  std::atomic<bool> peers_[ledger::kMaxDevices][ledger::kMaxDevices] = {};
  std::atomic<bool> anywhere_{false};
  const ContextRef unknown_ = std::make_shared<Context>();
};

}  // namespace ration::policy
