// Serves stream-ordered memory (cuMemAllocAsync and similar calls) from the driver's own pools: the default pools or
// the program's.
// Layer: policy/calls. Threads: any; no lock is held across a driver call.
#pragma once

#include "policy/devices/request.h"

namespace ration::policy {

struct CallParts;

class StreamMemory {
 public:
  explicit StreamMemory(const CallParts &parts) : parts_(parts) {}

  // Allocates from `pool`, as the program names it, or, if it is nullptr, from the current pool of the stream's device.
  CUresult allocate(Request request, CUmemoryPool pool, CUstream stream, Act act, CUdeviceptr *address);
  // Ends the block now, but its bytes stay charged until `stream` reaches this point.
  CUresult free(const char *api, CUdeviceptr address, CUstream stream, DriverCall call);
  CUresult create_pool(CUmemoryPool *pool, const CUmemPoolProps *properties, DriverCall call);
  CUresult destroy_pool(CUmemoryPool pool, DriverCall call);
  CUresult trim_pool(const char *api, CUmemoryPool pool, std::size_t kept);
  // The pool about which to ask the driver instead of the pool that the program names.
  CUmemoryPool behind(CUmemoryPool pool) noexcept;

 private:
  const CallParts &parts_;
};

}  // namespace ration::policy
