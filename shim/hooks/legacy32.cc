// The exports of CUDA 2.0 that take device memory or report it: 32-bit addresses and sizes. Charged like any other
// memory and never served from a pool, whose addresses do not fit. Layer: hooks. Threads: any.
#include <algorithm>

#include "hooks/boundary.h"
#include "hooks/hooks.h"
#include "hooks/pitch.h"
#include "policy/calls/device_memory.h"
#include "policy/calls/queries.h"

using ration::driver::real;
using ration::hooks::forwarding;
using ration::hooks::kAbsent;
using ration::policy::Act;
using ration::policy::DeviceMemory;
using ration::policy::Queries;

namespace {

unsigned saturated(std::size_t value) {
  return static_cast<unsigned>(std::min<std::size_t>(value, UINT32_MAX));
}

}  // namespace

extern "C" CUresult cuMemAlloc(CUdeviceptr_v1 *dptr, unsigned int bytesize) {
  if (!real.cuMemAlloc.present()) {
    return kAbsent;
  }
  const auto call = [=](CUdeviceptr_v1 *address) { return real.cuMemAlloc(address, bytesize); };
  if (dptr == nullptr) {
    return call(nullptr);
  }
  const void *caller = __builtin_return_address(0);
  return ration::hooks::allocating<DeviceMemory>(dptr, bytesize, call, [&](DeviceMemory &memory, Act act) {
    CUdeviceptr address = 0;
    const CUresult result = memory.allocate({"cuMemAlloc", bytesize, bytesize, caller}, act, &address);
    if (result == CUDA_SUCCESS) {
      *dptr = static_cast<CUdeviceptr_v1>(address);
    }
    return result;
  });
}

extern "C" CUresult cuMemAllocPitch(CUdeviceptr_v1 *dptr, unsigned int *pPitch, unsigned int WidthInBytes,
                                    unsigned int Height, unsigned int ElementSizeBytes) {
  if (!real.cuMemAllocPitch.present()) {
    return kAbsent;
  }
  const auto call = [=](CUdeviceptr_v1 *address, unsigned *pitch) {
    return real.cuMemAllocPitch(address, pitch, WidthInBytes, Height, ElementSizeBytes);
  };
  if (dptr == nullptr || pPitch == nullptr) {
    return call(dptr, pPitch);
  }
  const void *caller = __builtin_return_address(0);
  return ration::hooks::allocate_pitched(
      dptr, pPitch, WidthInBytes, Height, call,
      [&](DeviceMemory &memory, std::uint64_t bytes, std::uint64_t bound, Act act, CUdeviceptr *address) {
        return memory.allocate({"cuMemAllocPitch", bytes, bound, caller}, act, address);
      });
}

extern "C" CUresult cuMemFree(CUdeviceptr_v1 dptr) {
  if (!real.cuMemFree.present()) {
    return ration::hooks::kAbsent;
  }
  const auto call = [=] { return real.cuMemFree(dptr); };
  return forwarding<DeviceMemory>(call, [&](DeviceMemory &memory) { return memory.free("cuMemFree", dptr, call); });
}

extern "C" CUresult cuMemGetInfo(unsigned int *free, unsigned int *total) {
  if (!real.cuMemGetInfo.present()) {
    return kAbsent;
  }
  return forwarding<Queries>([=] { return real.cuMemGetInfo(free, total); },
                             [&](Queries &queries) {
                               unsigned driver_free = 0;
                               unsigned driver_total = 0;
                               const CUresult result = real.cuMemGetInfo(&driver_free, &driver_total);
                               if (result != CUDA_SUCCESS) {
                                 return result;
                               }
                               std::size_t free_bytes = driver_free;
                               std::size_t total_bytes = driver_total;
                               queries.present_memory(&free_bytes, &total_bytes);
                               if (free != nullptr) {
                                 *free = saturated(free_bytes);
                               }
                               if (total != nullptr) {
                                 *total = saturated(total_bytes);
                               }
                               return result;
                             });
}

extern "C" CUresult cuDeviceTotalMem(unsigned int *bytes, CUdevice dev) {
  if (!real.cuDeviceTotalMem.present()) {
    return kAbsent;
  }
  const auto call = [=] { return real.cuDeviceTotalMem(bytes, dev); };
  return forwarding<Queries>(call, [&](Queries &queries) {
    const CUresult result = call();
    if (result == CUDA_SUCCESS) {
      std::size_t total = *bytes;
      queries.present_total(&total, dev);
      *bytes = saturated(total);
    }
    return result;
  });
}
