// cuMemAlloc_v2, cuMemAllocPitch_v2, cuMemAllocManaged, cuMemFree_v2: memory of one device, allocated synchronously.
// The versions of CUDA 2.0 are in legacy32.cc.
// Layer: hooks. Threads: any.
#include "hooks/boundary.h"
#include "hooks/hooks.h"
#include "hooks/pitch.h"
#include "policy/calls/device_memory.h"

using ration::driver::real;
using ration::hooks::allocating;
using ration::policy::Act;
using ration::policy::DeviceMemory;

// Zero-byte requests bypass the pool; the driver rejects them.
extern "C" CUresult cuMemAlloc_v2(CUdeviceptr *dptr, size_t bytesize) {
  const void *caller = __builtin_return_address(0);
  return allocating<DeviceMemory>(
      real.cuMemAlloc_v2, bytesize,
      [=](DeviceMemory &memory, Act act) {
        return bytesize != 0 && memory.allocate_hit(bytesize, dptr)
                   ? CUDA_SUCCESS
                   : memory.allocate_slow({"cuMemAlloc_v2", bytesize, bytesize, caller, bytesize != 0}, act, dptr);
      },
      dptr, bytesize);
}

extern "C" CUresult cuMemAllocPitch_v2(CUdeviceptr *dptr, size_t *pPitch, size_t WidthInBytes, size_t Height,
                                       unsigned int ElementSizeBytes) {
  const bool valid = ration::hooks::is_element(ElementSizeBytes);
  const ration::hooks::Pitched asked{
      "cuMemAllocPitch_v2", __builtin_return_address(0), WidthInBytes, Height, valid, valid};
  return ration::hooks::allocate_pitched(real.cuMemAllocPitch_v2, asked, dptr, pPitch, WidthInBytes, Height,
                                         ElementSizeBytes);
}

// Managed pages migrate as they are used; at most their full size can be on the device.
extern "C" CUresult cuMemAllocManaged(CUdeviceptr *dptr, size_t bytesize, unsigned int flags) {
  const void *caller = __builtin_return_address(0);
  const bool valid = flags == 1 || flags == 2;  // cuda.h: CU_MEM_ATTACH_GLOBAL, CU_MEM_ATTACH_HOST
  return allocating<DeviceMemory>(
      real.cuMemAllocManaged, bytesize,
      [=](DeviceMemory &memory, Act act) {
        ration::policy::Request request{"cuMemAllocManaged", bytesize, bytesize, caller};
        request.invalid = !valid;
        return memory.allocate_managed(request, act, dptr);
      },
      dptr, bytesize, flags);
}

extern "C" CUresult cuMemFree_v2(CUdeviceptr dptr) {
  return ration::hooks::forwarding<DeviceMemory>(
      real.cuMemFree_v2,
      [=](DeviceMemory &memory, const auto &call) { return memory.free("cuMemFree_v2", dptr, call); }, dptr);
}
