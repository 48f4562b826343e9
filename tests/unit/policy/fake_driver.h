// A driver for one test: a few devices that each count their memory, and hooks with which a test makes the driver
// misbehave. Its functions are installed in driver::real as long as it exists. Threads: any.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "driver/functions.h"
#include "unit/policy/fake_timeline.h"

namespace ration::test {

inline constexpr std::uint64_t kMiB = 1 << 20;

class FakeDriver {
 public:
  FakeDriver();
  ~FakeDriver();
  FakeDriver(const FakeDriver &) = delete;
  FakeDriver &operator=(const FakeDriver &) = delete;

  std::uint64_t total = 16384 * kMiB;
  std::uint64_t taken_by_others = 0;
  std::uint64_t own_bytes[2] = {};          // per device: what the driver takes for this process, without contexts
  std::uint64_t context_bytes = 0;          // of each context
  std::uint64_t most_at_once = UINT64_MAX;  // larger allocations do not succeed, whatever is free
  std::atomic<bool> streams_wait{false};    // events are not ready until this is false or somebody synchronises
  std::atomic<bool> keeps_waiting{false};   // events are never ready, however long a thread polls
  std::atomic<int> polls{0};                // polls (kPolled looks each) that lasted until the work was done
  static constexpr int kPolled = 20;
  std::atomic<int> next_passed{0};        // this many queries of an event are nevertheless answered with "ready"
  std::map<std::string, CUresult> fails;  // function -> the code that it returns without doing anything
  // Sets an entry of `fails` while other threads may call the driver.
  void fail(const std::string &function, CUresult code) {
    const std::lock_guard lock(mutex_);
    fails[function] = code;
  }
  void fail_nothing() {
    const std::lock_guard lock(mutex_);
    fails.clear();
  }
  std::map<CUcontext, CUresult> broken;           // the code that all calls in the context return, also for its events
  std::function<void(CUdeviceptr)> after_free;    // inside the driver's free, when the address is free already
  std::function<void(CUcontext)> during_destroy;  // inside a destroy or release, while the context still exists
  std::function<void()> after_destroy;            // inside a destroy, when the context and its addresses are gone
  std::function<void()> after_alloc;              // inside the driver's allocation, after it has allocated
  std::function<void()> during_wait;              // inside cuEventSynchronize, and at the end of a poll
  std::function<void()> during_synchronise;       // inside cuCtxSynchronize, before anything has finished
  std::function<void()> after_record;             // inside cuCtxRecordEvent, after the event was recorded
  std::function<void()> on_query;                 // inside cuEventQuery, before its answer
  std::function<void()> on_capture_info;          // inside cuStreamGetCaptureInfo, before its answer

  FakeTimeline timeline;

  int calls(const std::string &function) const;
  int calls() const;  // of all functions
  std::size_t live_blocks() const;
  std::vector<CUdeviceptr> live_addresses() const;
  std::uint64_t used(int device) const;
  bool is_live(CUdeviceptr address) const;
  std::size_t live_events() const { return timeline.live_events(); }
  std::vector<std::uint64_t> asked() const;  // the sizes of all requested allocations

  // The driver's functions, in the order of used_functions.inc and hook_table.inc. enter() counts the call and returns
  // the code that the test has set for it.
  CUresult enter(const char *function);
  CUresult allocate(CUdeviceptr *address, std::uint64_t bytes);
  CUresult free(CUdeviceptr address);
  CUresult create(CUcontext *context, int device);
  CUresult destroy(CUcontext context);
  CUresult retain_primary(CUcontext *context, int device);
  CUresult release_primary(int device);
  CUresult reset_primary(int device);
  bool primary_is_active(int device) const;
  CUresult create_green(CUgreenCtx *green, int device);
  CUresult context_of(CUgreenCtx green, CUcontext *context);
  CUresult destroy_green(CUgreenCtx green);
  CUresult new_event(CUevent *event);
  CUresult event_state(CUevent event);
  CUresult wait_for(CUevent event);
  CUresult destroy_event(CUevent event);
  CUresult current_device(CUdevice *device) const;
  CUresult record_context(CUcontext context, CUevent event);
  CUresult synchronise();
  CUresult memory(std::size_t *free_bytes, std::size_t *total_bytes);

  static inline FakeDriver *fake = nullptr;
  static constexpr int kDevices = 2;
  static constexpr CUdevice kFirstHandle = 10;  // a device's handle need not be its ordinal
  static inline thread_local CUcontext current = nullptr;
  static inline thread_local std::vector<CUcontext> pushed;

 private:
  static void fill_slots();
  static void fill_watched_slots();
  static void empty_slots();

  struct Block {
    std::uint64_t bytes;
    CUcontext context;
  };
  std::uint64_t used_locked(int device) const;
  int device_of(CUcontext context) const;  // -1: no such context
  void end_context(CUcontext context);

  std::atomic<int> looks_{0};  // of streams that wait
  mutable std::mutex mutex_;
  std::map<std::string, int> calls_;
  std::map<CUdeviceptr, Block> blocks_;
  std::vector<std::pair<CUdeviceptr, std::uint64_t>> free_again_;  // handed out again, latest first
  std::map<CUcontext, int> contexts_;
  std::vector<CUcontext> free_handles_;
  std::vector<std::uint64_t> asked_;
  struct Green {
    int device;
    CUcontext context;
  };
  std::map<CUgreenCtx, Green> greens_;
  CUcontext primary_[kDevices] = {};
  int retained_[kDevices] = {};
  CUdeviceptr next_address_ = 0x700000000000;
  std::uintptr_t next_handle_ = 0x1000;
};

}  // namespace ration::test
