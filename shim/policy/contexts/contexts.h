// Keeps the contexts that this process has seen, and which of them have ended.
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

// The interface of a pool to its context.
class PoolOfContext {
 public:
  // Returns once no thread is in a hit of the pool any more.
  virtual void close_to_hits() noexcept = 0;
  // Called when the context object is destroyed. REQUIRES: close_to_hits() was called before.
  virtual void release() noexcept = 0;

 protected:
  ~PoolOfContext() = default;
};

// The other devices whose memory a context's work may use without peer access. A call that submits such work calls
// enter() before it and leave() after it. The device counts until everything that was submitted before leave() has
// finished.
class Reach {
 public:
  static constexpr int kAllDevices = ledger::kMaxDevices;
  static constexpr std::uint64_t kForEver = std::numeric_limits<std::uint64_t>::max();

  void enter(int device) noexcept {
    raise(device, kEntered);
    inside_.fetch_add(1);
  }
  // `number`: the number of a fence taken now (Contexts::tick); 0: the call submitted nothing. A call without a leave()
  // counts for ever.
  void leave(int device, std::uint64_t number) noexcept {
    raise(device, number);
    inside_.fetch_sub(1);
  }
  void add_for_ever(int device) noexcept { raise(device, kForEver); }
  // The number of the fence from which on the device no longer counts; 0 if it does not count at all. A thread that
  // frees a block does so after the calls that used the block, so it sees what they noted.
  std::uint64_t until(int device) const noexcept {
    const bool inside = inside_.load() != 0;  // read before the number that a call inside sets
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

// One lifetime of a context. If the driver reuses the handle, the new life is a new Context.
struct Context {
  CUcontext handle = nullptr;
  unsigned number = 0;  // from 1, in order of appearance; 0 if the driver does not report the current context
  int device = 0;
  std::atomic<const char *> ended_by{nullptr};  // the call that destroyed it
  // The number of a fence (fence_tracker.h): all work that was submitted to the context before that fence has finished.
  std::atomic<std::uint64_t> passed{0};
  Reach reach;
  // The handle now belongs to another context or to none, so no hit may use this context's pool.
  std::atomic<bool> renamed{false};
  // The context's pool, which is created at the first allocation and stays as long as this object.
  std::atomic<PoolOfContext *> pool{nullptr};

  Context() = default;
  ~Context();
  Context(const Context &) = delete;
  Context &operator=(const Context &) = delete;

  // Prevents the context's destruction while a driver call by Ration uses it. False if it is ending or has ended.
  bool pin();
  void unpin() {
    if (held::forget(drop_pin, this)) {
      drop_pin(this);
    }
  }
  // Waits until no pin is left, and admits no new pin until refuse_end(). Called before the program's call that
  // destroys the context; if that call fails, refuse_end() is called.
  void begin_end();
  void refuse_end() {
    ending_.fetch_sub(1);
    wake_waiters();
  }
  bool is_ending() const { return ending_.load() != 0; }
  // Whether the fast path of the context's pool may open. A thread that sets one of these three members closes the fast
  // path after that; a thread that opens it publishes the pool before it reads them. All accesses are seq_cst, so one
  // of the two threads sees what the other did.
  bool may_be_hit() const { return ending_.load() == 0 && ended_by.load() == nullptr && !renamed.load(); }
  // Returns once no thread is in a hit of the context's pool any more.
  void close_to_hits() noexcept;

 private:
  static void drop_pin(void *context) noexcept {
    static_cast<Context *>(context)->pins_.fetch_sub(1);
    wake_waiters();
  }

  // A pinning thread writes pins_ and then reads ending_; a thread that ends the context writes ending_ and then reads
  // pins_. All these accesses are seq_cst, so at least one of the two threads sees what the other wrote.
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

// Makes a context current while this object lives, unless it is current already. REQUIRES: the context is pinned, or
// the program itself just named it.
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
  held::Release restore_ = nullptr;  // nullptr: nothing is to be restored
};

class Contexts {
 public:
  explicit Contexts(Devices &devices) : devices_(devices) {}

  // Admits only one call at a time that retains, releases or resets a device's primary context. The handle always stays
  // the same, so only the order of these calls separates one life of the context from the next. This is a gate and not
  // a lock, because it is held across the driver's call, in which the driver may call back into us.
  // Design: design/quarantine.md#primary-contexts
  class PrimaryGate : public ReentrantGate {
   public:
    PrimaryGate(Contexts &contexts, int device) : ReentrantGate(contexts.primary_gates_[device]) {}
  };

  // The context of the calling thread. For a green context, this is the device's primary context, whose memory the
  // green context uses. If no context is current, `error` is what a call that needs a context returns. If the driver
  // serves such a call nevertheless, the first device is charged, which is the strictest interpretation.
  // Design: design/first-use.md#no-context
  struct Current {
    ContextRef context;
    int device = 0;
    CUresult error = CUDA_SUCCESS;
  };
  Current current();
  // The error that the driver would return for a free on this thread if the thread has no context, or after the driver
  // has shut down.
  CUresult state_of_caller();

  ContextRef find(CUcontext handle);
  // The context of the stream; for a default stream, the current context.
  ContextRef of_stream(CUstream stream);
  // Return the Context for a handle. note() is for a current context; note_created() is for a context that was just
  // created, always a new life even while the former owner of the handle is still being forgotten; note_primary() is
  // for a context that was retained as the device's primary context.
  ContextRef note(CUcontext handle, int device);
  ContextRef note_created(CUcontext handle, int device);
  ContextRef note_primary(CUcontext handle, int device);
  ContextRef primary_of(int device);
  // Notes that `handle` is the context of `green`, so it uses the memory of the device's primary context.
  void note_green(CUcontext handle, CUgreenCtx green, int device);
  void forget_green(CUgreenCtx green);
  bool is_green(CUcontext handle);
  // Whether work of the context may use memory of the device (device_reach.h): it is of that device, was given peer
  // access to it, or took part in a copy that may not have ended. Each of these is noted before the driver's call
  // that makes it possible.
  bool may_reach(const Context &context, int device) const {
    return may_reach_at_any_time(context, device) ||
           context.passed.load(std::memory_order_acquire) < context.reach.until(device);
  }
  // Like may_reach(), but ignores what a single call, such as a copy, reaches until its work is done.
  bool may_reach_at_any_time(const Context &context, int device) const {
    return context.device == device || peers_[context.device][device].load(std::memory_order_relaxed) ||
           anywhere_.load(std::memory_order_relaxed);
  }
  void note_peer(int from, int to) noexcept { peers_[from][to].store(true, std::memory_order_relaxed); }
  // From now on it is unknown which devices work may reach, so every context may reach every device.
  void note_anywhere() noexcept { anywhere_.store(true, std::memory_order_relaxed); }
  // The next number, from 2. Fences, and the ends of calls whose work reaches another device, are numbered in one
  // sequence.
  std::uint64_t tick() noexcept { return clock_.fetch_add(1) + 1; }
  std::uint64_t now() const noexcept { return clock_.load(); }
  // Whether contexts of several devices were seen.
  bool on_several_devices() const noexcept { return several_devices_.load(std::memory_order_relaxed); }
  // All live contexts. Green ones are part of their primary context.
  std::vector<ContextRef> live();
  // Called when `api` has destroyed the context. From now on no block may be entered for it.
  void forget(const ContextRef &context, const char *api);
  // Like forget(), for a context whose end we did not see. The thread that gets the context from take_ended_unseen()
  // releases its memory.
  void forget_unseen(const ContextRef &context) noexcept;
  std::vector<ContextRef> take_ended_unseen();
  bool has_ended_unseen() const noexcept { return has_ended_unseen_.load(std::memory_order_relaxed); }

  // Change and return the number of references that the program holds: cuCtxAttach/Detach for a context, retain/release
  // for a device's primary context.
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
  // [from][to]: whether a context of device `from` was given peer access to device `to`. Kept for devices and not for
  // contexts, because a driver's pool gives access to a device as a whole. Relaxed, because a program frees a block
  // only after its calls that use the block.
  std::atomic<bool> peers_[ledger::kMaxDevices][ledger::kMaxDevices] = {};
  std::atomic<bool> anywhere_{false};
  const ContextRef unknown_ = std::make_shared<Context>();
};

}  // namespace ration::policy
