// Stream-ordered memory (cuMemAllocAsync and similar calls) from the driver's own pools, the default ones or the
// program's.
// Layer: policy/calls. Threads: any; no lock is held across a driver call.
#pragma once

#include "policy/devices/request.h"

namespace ration::policy {

struct CallParts;

class StreamMemory {
 public:
  explicit StreamMemory(const CallParts &parts) : parts_(parts) {}

  // Allocates from `pool`, as the program names it; nullptr: from the pool that is current on the stream's device.
  CUresult allocate(Request request, CUmemoryPool pool, CUstream stream, Act act, CUdeviceptr *address);
  // The block ends now; its bytes stay charged until `stream` reaches this point.
  CUresult free(const char *api, CUdeviceptr address, CUstream stream, DriverCall call);
  CUresult create_pool(CUmemoryPool *pool, const CUmemPoolProps *properties, DriverCall call);
  CUresult destroy_pool(CUmemoryPool pool, DriverCall call);
  CUresult trim_pool(const char *api, CUmemoryPool pool, std::size_t kept);
  // The pool to ask the driver about instead of the one that the program names.
  CUmemoryPool behind(CUmemoryPool pool) noexcept;

 private:
  const CallParts &parts_;
};

}  // namespace ration::policy
