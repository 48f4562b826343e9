// Pinned host memory, allocated or registered: recorded and counted, never limited.
// Layer: policy/calls. Threads: any.
#pragma once

#include "policy/calls/admission.h"

namespace ration::policy {

class HostMemory {
 public:
  HostMemory(Devices &devices, Books &books, Admission &admission)
      : devices_(devices), books_(books), admission_(admission) {}

  // On a device whose memory is the host's, what the pools keep of it and do not use makes room for it.
  CUresult allocate(Request request, Act act, Undo undo, CUdeviceptr *address);
  CUresult free(const char *api, const void *address, DriverCall call);

 private:
  bool shares_memory_with(int device);

  Devices &devices_;
  Books &books_;
  Admission &admission_;
};

}  // namespace ration::policy
