// cuMemAlloc, cuMemAllocPitch, cuMemAllocManaged, cuMemFree: memory of one device, synchronously.
// Layer: hooks. Threads: any.
#include "hooks/boundary.h"
#include "hooks/hooks.h"

using ration::driver::real;
using ration::policy::Obtained;
using ration::policy::Policy;

namespace {

// Pitch alignment of every device so far (CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT is 32, cuMemAllocPitch answers
// multiples of 512 since Kepler); a driver that rounds further is held to the limit after the call.
constexpr std::uint64_t kPitchAlignment = 512;

// width rounded up times height, saturating: more than any device has.
std::uint64_t pitched_bytes(std::uint64_t width, std::uint64_t height, std::uint64_t alignment) {
  std::uint64_t pitch = 0;
  std::uint64_t bytes = 0;
  if (__builtin_add_overflow(width, alignment - 1, &pitch) ||
      __builtin_mul_overflow(pitch / alignment * alignment, height, &bytes)) {
    return UINT64_MAX;
  }
  return bytes;
}

}  // namespace

extern "C" CUresult cuMemAlloc_v2(CUdeviceptr *dptr, size_t bytesize) {
  if (!real.cuMemAlloc_v2.present()) {
    return ration::hooks::kAbsent;
  }
  if (dptr == nullptr) {
    return real.cuMemAlloc_v2(nullptr, bytesize);  // the driver's own refusal, whatever the size
  }
  const void *caller = __builtin_return_address(0);
  const auto act = [&](Obtained &got) {
    got.bytes = bytesize;
    return real.cuMemAlloc_v2(&got.address, bytesize);
  };
  return ration::hooks::allocating(
      [&] { return real.cuMemAlloc_v2(dptr, bytesize); },
      [&](Policy &policy) {
        // Nothing is none of a pool's business: the driver refuses it.
        return policy.allocate({"cuMemAlloc_v2", bytesize, bytesize, caller, bytesize != 0}, act, dptr);
      });
}

extern "C" CUresult cuMemAllocPitch_v2(CUdeviceptr *dptr, size_t *pPitch, size_t WidthInBytes, size_t Height,
                                       unsigned int ElementSizeBytes) {
  if (!real.cuMemAllocPitch_v2.present()) {
    return ration::hooks::kAbsent;
  }
  if (dptr == nullptr || pPitch == nullptr) {
    return real.cuMemAllocPitch_v2(dptr, pPitch, WidthInBytes, Height, ElementSizeBytes);
  }
  const void *caller = __builtin_return_address(0);
  // cuda.h: 4, 8 or 16; the driver refuses everything else, and rows or lines that are not there.
  const bool valid =
      WidthInBytes != 0 && Height != 0 && (ElementSizeBytes == 4 || ElementSizeBytes == 8 || ElementSizeBytes == 16);
  size_t pitch = pitched_bytes(WidthInBytes, 1, kPitchAlignment);
  const auto act = [&](Obtained &got) {
    const CUresult result = real.cuMemAllocPitch_v2(&got.address, &pitch, WidthInBytes, Height, ElementSizeBytes);
    got.bytes = pitched_bytes(pitch, Height, 1);
    return result;
  };
  return ration::hooks::allocating(
      [&] { return real.cuMemAllocPitch_v2(dptr, pPitch, WidthInBytes, Height, ElementSizeBytes); },
      [&](Policy &policy) {
        const std::uint64_t requested = pitched_bytes(WidthInBytes, Height, 1);
        const std::uint64_t upper_bound = pitched_bytes(WidthInBytes, Height, kPitchAlignment);
        const CUresult result = policy.allocate(
            {"cuMemAllocPitch_v2", requested, upper_bound, caller, valid && upper_bound != UINT64_MAX}, act, dptr);
        if (result == CUDA_SUCCESS) {
          *pPitch = pitch;
        }
        return result;
      });
}

// Its pages come and go with use; what it may come to is its size.
extern "C" CUresult cuMemAllocManaged(CUdeviceptr *dptr, size_t bytesize, unsigned int flags) {
  if (!real.cuMemAllocManaged.present()) {
    return ration::hooks::kAbsent;
  }
  if (dptr == nullptr || bytesize == 0) {
    return real.cuMemAllocManaged(dptr, bytesize, flags);
  }
  const void *caller = __builtin_return_address(0);
  const auto act = [&](Obtained &got) {
    got.bytes = bytesize;
    return real.cuMemAllocManaged(&got.address, bytesize, flags);
  };
  return ration::hooks::allocating(
      [&] { return real.cuMemAllocManaged(dptr, bytesize, flags); },
      [&](Policy &policy) {
        return policy.allocate_managed({"cuMemAllocManaged", bytesize, bytesize, caller}, act, dptr);
      });
}

extern "C" CUresult cuMemFree_v2(CUdeviceptr dptr) {
  if (!real.cuMemFree_v2.present()) {
    return ration::hooks::kAbsent;
  }
  const auto act = [&] { return real.cuMemFree_v2(dptr); };
  return ration::hooks::forwarding(act, [&](Policy &policy) { return policy.free("cuMemFree_v2", dptr, act); });
}
