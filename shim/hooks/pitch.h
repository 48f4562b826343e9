// Pitched allocations, for the 64-bit and the 32-bit functions.
// Layer: hooks. Threads: any.
#pragma once

#include "hooks/boundary.h"
#include "policy/calls/device_memory.h"

namespace ration::hooks {

// The pitch alignment of every device so far: cuMemAllocPitch has returned multiples of 512 since Kepler, although
// CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT is 32. If a driver rounds up further, the limit is checked again after
// the call.
inline constexpr std::uint64_t kPitchAlignment = 512;

// `width` rounded up to `alignment`, times `height`; saturates at UINT64_MAX, which is more than any device has.
inline std::uint64_t pitched_bytes(std::uint64_t width, std::uint64_t height, std::uint64_t alignment) {
  std::uint64_t pitch = 0;
  std::uint64_t bytes = 0;
  if (__builtin_add_overflow(width, alignment - 1, &pitch) ||
      __builtin_mul_overflow(pitch / alignment * alignment, height, &bytes)) {
    return UINT64_MAX;
  }
  return bytes;
}

// cuda.h allows 4, 8 or 16. The driver refuses any other element size, and empty rows.
inline bool is_element(unsigned bytes) {
  return bytes == 4 || bytes == 8 || bytes == 16;
}

struct Pitched {
  const char *api;
  const void *caller;
  std::uint64_t width;
  std::uint64_t height;
  bool pooled;        // the memory may come from a pool
  bool valid = true;  // the driver accepts the element size
};

// True if the pitch of rows this wide would overflow. The driver then returns INVALID_VALUE even if memory is free
// (H100, H200, driver 580.159).
inline bool is_pitch_impossible(std::uint64_t width) {
  return width > UINT64_MAX - (kPitchAlignment - 1);
}

// Calls `slot` with both output pointers and `rest`. If memory runs out, the address becomes 0 and the pitch becomes
// what a successful call would return, as with real drivers (H100, H200, driver 580.159). If the driver itself refuses,
// the outputs keep the values that the driver wrote.
template <class Slot, class Address, class Size, class... Rest>
CUresult allocate_pitched(const Slot &slot, const Pitched &asked, Address *dptr, Size *pitch_bytes,
                          Rest... rest) noexcept {
  if (!slot.present()) {
    return kAbsent;
  }
  if (dptr == nullptr || pitch_bytes == nullptr) {
    return slot(dptr, pitch_bytes, rest...);
  }
  auto pitch = static_cast<Size>(pitched_bytes(asked.width, 1, kPitchAlignment));
  bool answered = false;  // the driver was called; if not, only a pool's block or a lack of memory sets the pitch
  bool writes = true;
  const auto call = [&](Address *address) {
    answered = true;
    const Size before = *pitch_bytes;
    pitch = before;
    const CUresult result = slot(address, &pitch, rest...);
    writes = pitch != before || result == CUDA_SUCCESS;
    return result;
  };
  const auto body = [&](policy::DeviceMemory &memory, policy::Act act) {
    const auto act_pitched = [&](policy::Obtained &got) {
      const CUresult result = act(got);
      got.bytes = pitched_bytes(pitch, asked.height, 1);
      return result;
    };
    const std::uint64_t bytes = pitched_bytes(asked.width, asked.height, 1);
    const std::uint64_t bound = pitched_bytes(asked.width, asked.height, kPitchAlignment);
    CUdeviceptr address = 0;
    policy::Request request{asked.api, bytes, bound, asked.caller, asked.pooled && bytes != 0 && bound != UINT64_MAX};
    request.invalid = !asked.valid || is_pitch_impossible(asked.width);
    const CUresult result = memory.allocate(request, act_pitched, &address);
    if (result == CUDA_SUCCESS) {
      *dptr = static_cast<Address>(address);
    }
    return result;
  };
  const CUresult result = obtaining<Crossing::allocating, policy::DeviceMemory, Refused::zeroes>(dptr, 0, call, body);
  if (writes && (result == CUDA_SUCCESS || result == CUDA_ERROR_OUT_OF_MEMORY || answered)) {
    *pitch_bytes = pitch;
  }
  return result;
}

}  // namespace ration::hooks
