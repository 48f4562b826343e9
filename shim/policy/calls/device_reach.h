// Facts that must be known about work before it is submitted: which other devices' memory it may use without peer
// access (by copies, fills and graphs), which frees come before it, and whether a synchronous call has to wait for it
// (sync_memops.h). A fence for a device's blocks covers only contexts that may reach that device (Contexts::may_reach).
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
    CUstream stream = nullptr;      // if the call is synchronous: the handle of the default stream
    CUdeviceptr addresses[2] = {};  // 0: none
    CUcontext parties[2] = {};      // contexts other than those of the stream and of the calling thread
    bool anywhere = false;          // it may use any memory; its addresses are not checked
  };
  // The devices of the memory that the work uses; -1 stands for none, or one that needs no fence.
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
  // The devices of the work's memory; none if all of it is on the devices of the contexts that use it.
  Used used_abroad(const Work &work) noexcept;
  // Notes what a call's work may reach. REQUIRES: used.any().
  class Noted {
   public:
    Noted(DeviceReach &reach, const Work &work, const Used &used) noexcept;
    // For a driver call that did not return because its thread was cancelled.
    ~Noted() {
      if (!left_) {
        (void)leave(CUDA_SUCCESS);
      }
    }
    // Called after the driver's call, with its answer. If true, call fence() to separate later work from this call's.
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
  // Costs one load as long as all contexts are of one device.
  bool is_needed() const noexcept { return contexts_.on_several_devices(); }

  // Whether there are most likely frees without a fence. A fence that is taken later would also cover the work that is
  // about to be submitted, and a call that needs the freed memory would wait for that work. Costs one load.
  bool may_have_unsealed_frees() const noexcept { return fences_.unsealed_noted(); }
  void seal_frees() noexcept;

  // has_marked_blocks(): whether any block has the attribute SYNC_MEMOPS without the driver's knowledge; costs one
  // load. is_marked(): whether the memory that the work uses has this attribute.
  bool has_marked_blocks() const noexcept { return sync_memops_.keeps_any(); }
  bool is_marked(const Work &work) noexcept;
  // Called after a synchronous call on marked memory succeeded. Waits, and returns the answer for that call.
  static CUresult wait(const Work &work) { return SyncMemops::wait(work.stream); }

  // Whether a driver function that no hook covers may submit such work: a newer version of a hooked function, or a
  // newer function. `version`: as cuGetProcAddress takes it.
  static bool is_of_family(const char *name, int version);
  void note_unknown() noexcept { contexts_.note_anywhere(); }

 private:
  bool has_unsealed_frees() noexcept;
  bool is_abroad(const Work &work, const Used &used) noexcept;
  template <class Visit>
  void each_context(const Work &work, const Visit &visit);
  int device_at(CUdeviceptr address);

  const CallParts &parts_;
  // Used by every launch and copy.
  Contexts &contexts_;
  FenceTracker &fences_;
  SyncMemops &sync_memops_;
};

}  // namespace ration::policy
