// cuMemAlloc, cuMemAllocPitch, cuMemAllocManaged, cuMemFree: memory of one device, synchronously.
// Layer: hooks. Threads: any.
#include "hooks/boundary.h"
#include "hooks/hooks.h"
#include "hooks/pitch.h"
#include "policy/calls/device_memory.h"

using ration::driver::real;
using ration::hooks::allocating;
using ration::hooks::kAbsent;
using ration::policy::Act;
using ration::policy::DeviceMemory;
using ration::policy::Obtained;

// An out-parameter that is null, and a size of 0, are the driver's to refuse: neither is ever served from a pool.
extern "C" CUresult cuMemAlloc_v2(CUdeviceptr *dptr, size_t bytesize) {
  if (!real.cuMemAlloc_v2.present()) {
    return kAbsent;
  }
  const auto call = [=](CUdeviceptr *address) { return real.cuMemAlloc_v2(address, bytesize); };
  if (dptr == nullptr) {
    return call(nullptr);
  }
  const void *caller = __builtin_return_address(0);
  return allocating<DeviceMemory>(dptr, bytesize, call, [&](DeviceMemory &memory, Act act) {
    return memory.allocate({"cuMemAlloc_v2", bytesize, bytesize, caller, bytesize != 0}, act, dptr);
  });
}

extern "C" CUresult cuMemAllocPitch_v2(CUdeviceptr *dptr, size_t *pPitch, size_t WidthInBytes, size_t Height,
                                       unsigned int ElementSizeBytes) {
  if (!real.cuMemAllocPitch_v2.present()) {
    return kAbsent;
  }
  const auto call = [=](CUdeviceptr *address, size_t *pitch) {
    return real.cuMemAllocPitch_v2(address, pitch, WidthInBytes, Height, ElementSizeBytes);
  };
  if (dptr == nullptr || pPitch == nullptr) {
    return call(dptr, pPitch);
  }
  const void *caller = __builtin_return_address(0);
  return ration::hooks::allocate_pitched(
      dptr, pPitch, WidthInBytes, Height, call,
      [&](DeviceMemory &memory, std::uint64_t bytes, std::uint64_t bound, Act act, CUdeviceptr *address) {
        // cuda.h: 4, 8 or 16. The driver refuses every other element size, and empty rows.
        const bool valid = bytes != 0 && bound != UINT64_MAX &&
                           (ElementSizeBytes == 4 || ElementSizeBytes == 8 || ElementSizeBytes == 16);
        return memory.allocate({"cuMemAllocPitch_v2", bytes, bound, caller, valid}, act, address);
      });
}

// Managed pages migrate with use; the size is the most that can come to lie on the device.
extern "C" CUresult cuMemAllocManaged(CUdeviceptr *dptr, size_t bytesize, unsigned int flags) {
  if (!real.cuMemAllocManaged.present()) {
    return kAbsent;
  }
  const auto call = [=](CUdeviceptr *address) { return real.cuMemAllocManaged(address, bytesize, flags); };
  if (dptr == nullptr || bytesize == 0) {
    return call(dptr);
  }
  const void *caller = __builtin_return_address(0);
  return allocating<DeviceMemory>(dptr, bytesize, call, [&](DeviceMemory &memory, Act act) {
    return memory.allocate_managed({"cuMemAllocManaged", bytesize, bytesize, caller}, act, dptr);
  });
}

extern "C" CUresult cuMemFree_v2(CUdeviceptr dptr) {
  if (!real.cuMemFree_v2.present()) {
    return kAbsent;
  }
  const auto call = [=] { return real.cuMemFree_v2(dptr); };
  return ration::hooks::forwarding<DeviceMemory>(
      call, [&](DeviceMemory &memory) { return memory.free("cuMemFree_v2", dptr, call); });
}
