// Which sizes are fleeting: what the last block of exactly that size that was freed had lived for.
// Layer: pool, a leaf (standard library only). Threads: none of its own; the caller locks.
//
// Time is counted in bytes allocated. The last life, and not a mean, because it follows the phases of a program: in the
// forward pass of a training step the last freed of a size is a temporary, in the backward pass a saved activation.
#pragma once

#include <array>
#include <cstdint>

#include "pool/granule.h"

namespace ration::pool {

class SizeLives {
 public:
  // A stamp of 1 MiB; they come round after 4 PiB.
  [[nodiscard]] std::uint32_t now() const noexcept { return static_cast<std::uint32_t>(clock_ >> kStampShift); }
  void allocated(std::uint64_t granules) noexcept { clock_ += granules; }
  // A block of that size, born at that stamp, is freed while so many granules are live.
  void freed(std::uint64_t granules, std::uint32_t birth, std::uint64_t live_granules) noexcept {
    const std::uint64_t life = std::uint64_t{now() - birth} << kStampShift;
    const bool fleeting = life < live_granules / kFleeting;
    seen_[slot_of(granules)] = static_cast<std::uint16_t>(tag_of(granules) << 1 | std::uint32_t{fleeting});
  }
  // False also where nothing is known.
  [[nodiscard]] bool fleeting(std::uint64_t granules) const noexcept {
    return seen_[slot_of(granules)] == (tag_of(granules) << 1 | 1U);
  }

 private:
  static constexpr unsigned kStampShift = 20 - kGranuleShift;
  // Between a quarter and a 64th of what is live makes no difference that counts on any trace.
  static constexpr std::uint64_t kFleeting = 16;
  static constexpr unsigned kSlotBits = 8;

  static std::size_t slot_of(std::uint64_t granules) { return mixed(granules) >> (64 - kSlotBits); }
  // One size in 32,768 of a slot is taken for another, which is only a choice.
  static std::uint32_t tag_of(std::uint64_t granules) {
    return static_cast<std::uint32_t>(mixed(granules) >> 24) & 0x7FFF;
  }

  std::array<std::uint16_t, std::size_t{1} << kSlotBits> seen_{};
  std::uint64_t clock_ = 0;  // granules allocated so far
};

}  // namespace ration::pool
