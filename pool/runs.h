// Detects runs of blocks of one size, each requested while the one before is live, and predicts long ones.
// Layer: pool, a leaf (standard library only). Threads: none of its own; the caller locks.
#pragma once

#include <cstdint>

#include "pool/unit.h"

namespace ration::pool {

class Runs {
 public:
  // Records a served request. Required for every size, because any other size ends a run.
  void record(std::uint64_t units, Address address) noexcept {
    if (units != units_) start();
    units_ = units;
    address_ = address;
  }
  [[nodiscard]] bool is_repeated(std::uint64_t units) const noexcept { return units == units_; }
  [[nodiscard]] Address last_address() const noexcept { return address_; }

  void start() noexcept {
    if (length_ > 1) last_length_ = length_;
    length_ = 1;
  }
  void extend() noexcept { ++length_; }
  // True also where it is likely to become long: programs repeat themselves.
  [[nodiscard]] bool is_long() const noexcept { return length_ >= kLong || last_length_ >= kLong; }

 private:
  // In blocks. Short runs are placed better by the hole's size (graph analytics, sampling of images).
  static constexpr std::uint32_t kLong = 16;

  std::uint64_t units_ = 0;   // of the last request
  Address address_ = 0;       // of its block
  std::uint32_t length_ = 1;  // blocks so far
  std::uint32_t last_length_ = 1;
};

}  // namespace ration::pool
