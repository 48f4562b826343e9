// Pitched allocations, in the 64-bit and the 32-bit flavour.
// Layer: hooks. Threads: any.
#pragma once

#include "hooks/boundary.h"

namespace ration::policy {
class DeviceMemory;
}

namespace ration::hooks {

// Pitch alignment of every device so far (CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT is 32, cuMemAllocPitch answers
// multiples of 512 since Kepler); a driver that rounds further is held to the limit after the call.
inline constexpr std::uint64_t kPitchAlignment = 512;

// `width` rounded up to `alignment`, times `height`; saturates at UINT64_MAX, more than any device has.
inline std::uint64_t pitched_bytes(std::uint64_t width, std::uint64_t height, std::uint64_t alignment) {
  std::uint64_t pitch = 0;
  std::uint64_t bytes = 0;
  if (__builtin_add_overflow(width, alignment - 1, &pitch) ||
      __builtin_mul_overflow(pitch / alignment * alignment, height, &bytes)) {
    return UINT64_MAX;
  }
  return bytes;
}

// `call(address, pitch)` is the driver's call. `body` gets the bytes of the rows, the bound at our pitch, the call as
// an Act, and a place for the address; only success writes `*dptr` and `*pitch_bytes`.
template <class Address, class Size, class Call, class Body>
CUresult allocate_pitched(Address *dptr, Size *pitch_bytes, Size width, Size height, const Call &call,
                          const Body &body) noexcept {
  auto pitch = static_cast<Size>(pitched_bytes(width, 1, kPitchAlignment));
  const auto act = [&](policy::Obtained &got) {
    Address address = 0;
    const CUresult result = call(&address, &pitch);
    got = {address, pitched_bytes(pitch, height, 1)};
    return result;
  };
  return cross<Crossing::allocating, policy::DeviceMemory>(
      [&] { return call(dptr, pitch_bytes); },
      [&](policy::DeviceMemory &memory) {
        CUdeviceptr address = 0;
        const CUresult result = body(memory, pitched_bytes(width, height, 1),
                                     pitched_bytes(width, height, kPitchAlignment), policy::Act(act), &address);
        if (result == CUDA_SUCCESS) {
          *dptr = static_cast<Address>(address);
          *pitch_bytes = pitch;
        }
        return result;
      });
}

}  // namespace ration::hooks
