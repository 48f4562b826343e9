// The exports of CUDA 2.0 that take device memory or tell of it: addresses and sizes of 32 bits. Charged like any other
// memory and never served from a pool, whose addresses they could not tell. Layer: hooks. Threads: any.
#include <algorithm>

#include "hooks/boundary.h"
#include "hooks/hooks.h"

using ration::driver::real;
using ration::policy::Obtained;
using ration::policy::Policy;

namespace {

constexpr std::uint64_t kPitchAlignment = 512;  // as in device.cc

unsigned narrowed(std::size_t value) {
  return static_cast<unsigned>(std::min<std::size_t>(value, UINT32_MAX));
}

}  // namespace

extern "C" CUresult cuMemAlloc(CUdeviceptr_v1 *dptr, unsigned int bytesize) {
  if (!real.cuMemAlloc.present()) {
    return ration::hooks::kAbsent;
  }
  if (dptr == nullptr) {
    return real.cuMemAlloc(nullptr, bytesize);
  }
  const void *caller = __builtin_return_address(0);
  const auto act = [&](Obtained &got) {
    CUdeviceptr_v1 address = 0;
    const CUresult result = real.cuMemAlloc(&address, bytesize);
    got = {address, bytesize};
    return result;
  };
  return ration::hooks::allocating(
      [&] { return real.cuMemAlloc(dptr, bytesize); },
      [&](Policy &policy) {
        CUdeviceptr address = 0;
        const CUresult result = policy.allocate({"cuMemAlloc", bytesize, bytesize, caller}, act, &address);
        if (result == CUDA_SUCCESS) {
          *dptr = static_cast<CUdeviceptr_v1>(address);
        }
        return result;
      });
}

extern "C" CUresult cuMemAllocPitch(CUdeviceptr_v1 *dptr, unsigned int *pPitch, unsigned int WidthInBytes,
                                    unsigned int Height, unsigned int ElementSizeBytes) {
  if (!real.cuMemAllocPitch.present()) {
    return ration::hooks::kAbsent;
  }
  if (dptr == nullptr || pPitch == nullptr) {
    return real.cuMemAllocPitch(dptr, pPitch, WidthInBytes, Height, ElementSizeBytes);
  }
  const void *caller = __builtin_return_address(0);
  unsigned pitch = 0;
  const auto act = [&](Obtained &got) {
    CUdeviceptr_v1 address = 0;
    const CUresult result = real.cuMemAllocPitch(&address, &pitch, WidthInBytes, Height, ElementSizeBytes);
    got = {address, std::uint64_t{pitch} * Height};
    return result;
  };
  return ration::hooks::allocating(
      [&] { return real.cuMemAllocPitch(dptr, pPitch, WidthInBytes, Height, ElementSizeBytes); },
      [&](Policy &policy) {
        const std::uint64_t requested = std::uint64_t{WidthInBytes} * Height;
        const std::uint64_t row = (WidthInBytes + kPitchAlignment - 1) / kPitchAlignment * kPitchAlignment;
        std::uint64_t upper_bound = 0;
        if (__builtin_mul_overflow(row, std::uint64_t{Height}, &upper_bound)) {
          upper_bound = UINT64_MAX;
        }
        CUdeviceptr address = 0;
        const CUresult result = policy.allocate({"cuMemAllocPitch", requested, upper_bound, caller}, act, &address);
        if (result == CUDA_SUCCESS) {
          *dptr = static_cast<CUdeviceptr_v1>(address);
          *pPitch = pitch;
        }
        return result;
      });
}

extern "C" CUresult cuMemFree(CUdeviceptr_v1 dptr) {
  if (!real.cuMemFree.present()) {
    return ration::hooks::kAbsent;
  }
  const auto act = [&] { return real.cuMemFree(dptr); };
  return ration::hooks::forwarding(act, [&](Policy &policy) { return policy.free("cuMemFree", dptr, act); });
}

extern "C" CUresult cuMemGetInfo(unsigned int *free, unsigned int *total) {
  if (!real.cuMemGetInfo.present()) {
    return ration::hooks::kAbsent;
  }
  return ration::hooks::forwarding([&] { return real.cuMemGetInfo(free, total); },
                                   [&](Policy &policy) {
                                     unsigned free_told = 0;
                                     unsigned total_told = 0;
                                     const CUresult result = real.cuMemGetInfo(&free_told, &total_told);
                                     if (result != CUDA_SUCCESS) {
                                       return result;
                                     }
                                     std::size_t free_bytes = free_told;
                                     std::size_t total_bytes = total_told;
                                     policy.present_memory(&free_bytes, &total_bytes);
                                     if (free != nullptr) {
                                       *free = narrowed(free_bytes);
                                     }
                                     if (total != nullptr) {
                                       *total = narrowed(total_bytes);
                                     }
                                     return result;
                                   });
}

extern "C" CUresult cuDeviceTotalMem(unsigned int *bytes, CUdevice dev) {
  if (!real.cuDeviceTotalMem.present()) {
    return ration::hooks::kAbsent;
  }
  const auto act = [&] { return real.cuDeviceTotalMem(bytes, dev); };
  return ration::hooks::forwarding(act, [&](Policy &policy) {
    const CUresult result = act();
    if (result == CUDA_SUCCESS) {
      std::size_t total = *bytes;
      policy.present_total(&total, dev);
      *bytes = narrowed(total);
    }
    return result;
  });
}
