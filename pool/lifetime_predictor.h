// Predicts whether a block will be short-lived, from the lifetime of the last freed block of exactly the same size.
// Layer: pool, a leaf (standard library only). Threads: none of its own; the caller locks.
//
// Time is counted in bytes allocated. The last lifetime follows the phases of a program better than a mean would. In
// the forward pass of a training step, the last freed block of a size is a temporary; in the backward pass, it is a
// saved activation.
#pragma once

#include <array>
#include <cstdint>

#include "pool/unit.h"

namespace ration::pool {

class LifetimePredictor {
 public:
  // The current time as a stamp, in units of 1 MiB; the stamp wraps after 4 PiB.
  [[nodiscard]] std::uint32_t now() const noexcept { return static_cast<std::uint32_t>(clock_ >> kStampShift); }
  void allocated(std::uint64_t units) noexcept { clock_ += units; }
  // Records that a block of `units`, born at `birth`, is freed while `live_units` are live.
  void freed(std::uint64_t units, std::uint32_t birth, std::uint64_t live_units) noexcept {
    const std::uint64_t lifetime = std::uint64_t{now() - birth} << kStampShift;
    const bool short_lived = lifetime < live_units / kShortLivedShare;
    seen_[slot_of(units)] = static_cast<std::uint16_t>(tag_of(units) << 1 | std::uint32_t{short_lived});
  }
  // False if the size is unknown.
  [[nodiscard]] bool is_short_lived(std::uint64_t units) const noexcept {
    return seen_[slot_of(units)] == (tag_of(units) << 1 | 1U);
  }

 private:
  static constexpr unsigned kStampShift = 20 - kUnitShift;
  // A block is short-lived if the bytes allocated during its life are fewer than the live bytes divided by this. Values
  // from 4 to 64 give nearly the same result on every trace.
  static constexpr std::uint64_t kShortLivedShare = 16;
  static constexpr unsigned kSlotBits = 8;

  static std::size_t slot_of(std::uint64_t units) { return mixed(units) >> (64 - kSlotBits); }
  // Of the sizes that share a slot, one in 32,768 is mistaken for another; such a mistake only makes a placement worse.
  static std::uint32_t tag_of(std::uint64_t units) { return static_cast<std::uint32_t>(mixed(units) >> 24) & 0x7FFF; }

  std::array<std::uint16_t, std::size_t{1} << kSlotBits> seen_{};
  std::uint64_t clock_ = 0;  // units allocated so far
};

}  // namespace ration::pool
