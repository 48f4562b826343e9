// What is to know of work before it is submitted. Which other devices' memory a context's work may use without peer
// access (by copies, fills and graphs): a fence for a device's blocks counts only the contexts that may reach it
// (Contexts::may_reach). And which frees come before it.
// Layer: policy/calls. Threads: any; no lock is held across a driver call.
// Called from: hooks, before the driver's call.
#pragma once

#include "policy/block_pool/block_pools.h"
#include "policy/calls/async_memory.h"

namespace ration::policy {

class DeviceReach {
 public:
  DeviceReach(Contexts &contexts, FenceTracker &fences, BlockPools &pools, AsyncMemory &async)
      : contexts_(contexts), fences_(fences), pools_(pools), async_(async) {}

  struct Work {
    CUstream stream = nullptr;
    CUdeviceptr addresses[2] = {};  // 0: none
    CUcontext parties[2] = {};      // beside those of the stream and of the calling thread
    bool anywhere = false;          // what it uses is not looked at
  };
  // What a call's work may reach.
  class Noted {
   public:
    Noted(DeviceReach &reach, const Work &work) noexcept;
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
    void note(DeviceReach &reach, const Work &work);
    void enter(ContextRef context) noexcept;

    Contexts &contexts_;
    FenceTracker &fences_;
    int devices_[2] = {-1, -1};
    ContextRef inside_[4];  // of the thread, of the stream, and the parties
    int count_ = 0;
    bool left_ = false;
  };
  // A load while all contexts are of one device.
  bool is_needed() const noexcept { return contexts_.on_several_devices(); }

  // Frees without a fence: one that is taken later would cover the work that is about to be submitted, and whoever
  // needs their memory would wait for that. Some loads.
  bool has_unsealed_frees() noexcept { return pools_.has_unsealed_frees() || async_.has_unsealed_frees(); }
  void seal_frees() noexcept {
    pools_.seal_frees();
    async_.seal_frees();
  }

  // Whether a function of the driver that no hook meets may be one of these: a version that is newer than the hooks',
  // or a newer function. `version`: as cuGetProcAddress takes it.
  static bool is_of_family(const char *name, int version);
  void note_unknown() noexcept { contexts_.note_anywhere(); }

 private:
  int device_at(CUdeviceptr address);

  Contexts &contexts_;
  FenceTracker &fences_;
  BlockPools &pools_;
  AsyncMemory &async_;
};

}  // namespace ration::policy
