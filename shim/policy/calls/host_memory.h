// Records and counts pinned host memory, allocated or registered, but never limits it.
// Layer: policy/calls. Threads: any.
#pragma once

#include "policy/devices/request.h"

namespace ration::policy {

struct CallParts;

// Design: design/charging.md#pinned-memory
class HostMemory {
 public:
  explicit HostMemory(const CallParts &parts) : parts_(parts) {}

  // If the device uses the host's memory, the pools give back unused memory for the request.
  CUresult allocate(Request request, Act act, Undo undo, CUdeviceptr *address);
  CUresult free(const char *api, const void *address, DriverCall call);

 private:
  bool shares_memory_with(int device);

  const CallParts &parts_;
};

}  // namespace ration::policy
