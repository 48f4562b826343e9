// What is to know of work before it is submitted. Which other devices' memory a context's work may use without peer
// access (by copies, fills and graphs): a fence for a device's blocks counts only the contexts that may reach it
// (Contexts::may_reach). Which frees come before it. And whether a synchronous call has to wait for it (sync_memops.h).
// Layer: policy/calls. Threads: any; no lock is held across a driver call.
// Called from: hooks, around the driver's call.
// Design: design/quarantine.md#reach-of-other-devices
#pragma once

#include "policy/calls/sync_memops.h"
#include "policy/contexts/fence_tracker.h"

namespace ration::policy {

struct CallParts;

class DeviceReach {
 public:
  explicit DeviceReach(const CallParts &parts);

  struct Work {
    CUstream stream = nullptr;      // of a synchronous call: the default one, by its own handle
    CUdeviceptr addresses[2] = {};  // 0: none
    CUcontext parties[2] = {};      // beside those of the stream and of the calling thread
    bool anywhere = false;          // what it uses is not looked at
  };
  // Where what it uses is; -1: nowhere that a fence is needed for.
  struct Used {
    int devices[2] = {-1, -1};
    bool any() const { return devices[0] >= 0 || devices[1] >= 0; }
    template <class Visit>
    void each_abroad(const Context &from, const Visit &visit) const {
      for (const int device : devices) {
        if (device >= 0 && device != from.device) {
          visit(device);
        }
      }
    }
    bool is_abroad(const Context &from) const {
      bool any = false;
      each_abroad(from, [&any](int) { any = true; });
      return any;
    }
  };
  // None if it is all of the devices of the contexts that use it.
  Used used_abroad(const Work &work) noexcept;
  // What a call's work may reach. REQUIRES: used.any().
  class Noted {
   public:
    Noted(DeviceReach &reach, const Work &work, const Used &used) noexcept;
    // Where the driver's call did not return: its thread was cancelled.
    ~Noted() {
      if (!left_) {
        (void)leave(CUDA_SUCCESS);
      }
    }
    // Behind the driver's call, with its answer. True: fence() tells later work apart.
    bool leave(CUresult result) noexcept;
    void fence() noexcept;
    Noted(const Noted &) = delete;
    Noted &operator=(const Noted &) = delete;

   private:
    void enter(const ContextRef &context) noexcept;

    Contexts &contexts_;
    FenceTracker &fences_;
    const Used used_;
    ContextRef inside_[4];  // of the thread, of the stream, and the parties
    int count_ = 0;
    bool left_ = false;
  };
  // A load while all contexts are of one device.
  bool is_needed() const noexcept { return contexts_.on_several_devices(); }

  // Frees without a fence, most likely: one that is taken later would cover the work that is about to be submitted, and
  // a call that needs their memory would wait for that. A load.
  bool may_have_unsealed_frees() const noexcept { return fences_.unsealed_noted(); }
  void seal_frees() noexcept;

  // Whether any block has SYNC_MEMOPS that the driver does not know of: a load. Whether what a call uses has it.
  bool has_marked_blocks() const noexcept { return sync_memops_.keeps_any(); }
  bool is_marked(const Work &work) noexcept;
  // After a synchronous call that succeeded on marked memory: its answer.
  static CUresult wait(const Work &work) { return SyncMemops::wait(work.stream); }

  // Whether a function of the driver that no hook meets may be one of these: a version that is newer than the hooks',
  // or a newer function. `version`: as cuGetProcAddress takes it.
  static bool is_of_family(const char *name, int version);
  void note_unknown() noexcept { contexts_.note_anywhere(); }

 private:
  bool has_unsealed_frees() noexcept;
  bool is_abroad(const Work &work, const Used &used) noexcept;
  template <class Visit>
  void each_context(const Work &work, const Visit &visit);
  int device_at(CUdeviceptr address);

  const CallParts &parts_;
  // What every launch and copy asks.
  Contexts &contexts_;
  FenceTracker &fences_;
  SyncMemops &sync_memops_;
};

}  // namespace ration::policy
