// Detects whether a program requests the same large sizes again and again. If it does, the holes that its blocks leave
// fit its next blocks.
// Layer: pool, a leaf (standard library only). Threads: none of its own; the caller locks.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "pool/unit.h"

namespace ration::pool::stitch {

class SeenSizes {
 public:
  void note(std::uint64_t bytes) noexcept {
    const std::uint64_t units = units_of(bytes);
    std::uint64_t &place = seen_[mixed(units) >> (64 - kBits)];
    const bool fresh = place != units;
    place = units;
    run_ = units == last_ ? run_ + 1 : 0;
    last_ = units;
    few_.note(fresh);
    many_.note(fresh);
    noted_ += noted_ < kMany ? 1 : 0;
  }
  // Resets the members in place, because a temporary of this class would need a lot of stack.
  void forget() noexcept {
    seen_.fill(0);
    few_ = {};
    many_ = {};
    noted_ = last_ = run_ = 0;
  }
  // True if the last request had the same size as the one before it, but false again after more than 1,024 such.
  [[nodiscard]] bool is_run() const noexcept { return run_ != 0 && run_ < kMany; }
  // True if most of the recent requests had a size that was not seen before.
  [[nodiscard]] bool are_random() const noexcept { return noted_ >= kFew && few_.share() > kScale / 2; }
  // True if more than one request in 32 has a fresh size. In training, fewer than one in a thousand has a fresh size;
  // in serving, one in sixteen.
  [[nodiscard]] bool are_irregular() const noexcept { return noted_ == kMany && many_.share() > kScale / 32; }

 private:
  static constexpr unsigned kBits = 12;
  static constexpr std::uint64_t kFew = 16;
  static constexpr std::uint64_t kMany = 1024;
  static constexpr std::uint64_t kScale = std::uint64_t{1} << 20;

  // A moving average over about kWindow requests.
  template <std::uint64_t kWindow>
  class Average {
   public:
    void note(bool fresh) noexcept { sum_ += (fresh ? kScale : 0) - sum_ / kWindow; }
    [[nodiscard]] std::uint64_t share() const noexcept { return sum_ / kWindow; }

   private:
    std::uint64_t sum_ = 0;
  };

  std::array<std::uint64_t, std::size_t{1} << kBits> seen_{};
  Average<kFew> few_;
  Average<kMany> many_;
  std::uint64_t noted_ = 0;
  std::uint64_t last_ = 0;
  std::uint64_t run_ = 0;
};

}  // namespace ration::pool::stitch
