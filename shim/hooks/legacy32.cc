// The exports of CUDA 2.0 that take or report device memory, with 32-bit addresses and sizes. Their memory is charged
// like any other, and never comes from a pool, whose addresses do not fit.
// Layer: hooks. Threads: any.
// Design: design/interception.md#calls-of-cuda-20
#include <algorithm>

#include "hooks/boundary.h"
#include "hooks/hooks.h"
#include "hooks/pitch.h"
#include "policy/calls/device_memory.h"
#include "policy/calls/queries.h"

using ration::driver::real;
using ration::hooks::forwarding;
using ration::policy::Act;
using ration::policy::DeviceMemory;
using ration::policy::Queries;

namespace {

unsigned saturated(std::size_t value) {
  return static_cast<unsigned>(std::min<std::size_t>(value, UINT32_MAX));
}

}  // namespace

extern "C" CUresult cuMemAlloc(CUdeviceptr_v1 *dptr, unsigned int bytesize) {
  const void *caller = __builtin_return_address(0);
  return ration::hooks::allocating<DeviceMemory>(
      real.cuMemAlloc, bytesize,
      [=](DeviceMemory &memory, Act act) {
        CUdeviceptr address = 0;
        const CUresult result = memory.allocate({"cuMemAlloc", bytesize, bytesize, caller}, act, &address);
        if (result == CUDA_SUCCESS) {
          *dptr = static_cast<CUdeviceptr_v1>(address);
        }
        return result;
      },
      dptr, bytesize);
}

extern "C" CUresult cuMemAllocPitch(CUdeviceptr_v1 *dptr, unsigned int *pPitch, unsigned int WidthInBytes,
                                    unsigned int Height, unsigned int ElementSizeBytes) {
  const bool valid = ration::hooks::is_element(ElementSizeBytes);
  const ration::hooks::Pitched asked{
      "cuMemAllocPitch", __builtin_return_address(0), WidthInBytes, Height, false, valid};
  return ration::hooks::allocate_pitched(real.cuMemAllocPitch, asked, dptr, pPitch, WidthInBytes, Height,
                                         ElementSizeBytes);
}

extern "C" CUresult cuMemFree(CUdeviceptr_v1 dptr) {
  return forwarding<DeviceMemory>(
      real.cuMemFree, [=](DeviceMemory &memory, const auto &call) { return memory.free("cuMemFree", dptr, call); },
      dptr);
}

extern "C" CUresult cuMemGetInfo(unsigned int *free, unsigned int *total) {
  return forwarding<Queries>(
      real.cuMemGetInfo,
      [=](Queries &queries, const auto &call) {
        const CUresult result = call();
        if (result != CUDA_SUCCESS) {
          return result;
        }
        std::size_t free_bytes = free != nullptr ? *free : 0;
        std::size_t total_bytes = total != nullptr ? *total : 0;
        queries.present_memory(&free_bytes, &total_bytes);
        if (free != nullptr) {
          *free = saturated(free_bytes);
        }
        if (total != nullptr) {
          *total = saturated(total_bytes);
        }
        return result;
      },
      free, total);
}

extern "C" CUresult cuDeviceTotalMem(unsigned int *bytes, CUdevice dev) {
  return forwarding<Queries>(
      real.cuDeviceTotalMem,
      [=](Queries &queries, const auto &call) {
        const CUresult result = call();
        if (result == CUDA_SUCCESS) {
          std::size_t total = *bytes;
          queries.present_total(&total, dev);
          *bytes = saturated(total);
        }
        return result;
      },
      bytes, dev);
}
