// Detects runs (successive requests of one size, each made while the previous block is live) and predicts long ones.
// Layer: pool, a leaf (standard library only). Threads: none of its own; the caller locks.
#pragma once

#include <cstdint>

#include "pool/unit.h"

namespace ration::pool {

class Runs {
 public:
  // Records a served request. Must be called for every size, because a request of another size ends the run.
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
  // True if the run is long, or is likely to become long because the last run was long: programs repeat themselves.
  [[nodiscard]] bool is_long() const noexcept { return length_ >= kLong || last_length_ >= kLong; }

 private:
  // In blocks. In short runs (graph analytics, image sampling), placing blocks by hole size works better.
  static constexpr std::uint32_t kLong = 16;

  std::uint64_t units_ = 0;   // of the last request
  Address address_ = 0;       // of the last request's block
  std::uint32_t length_ = 1;  // blocks in the current run so far
  std::uint32_t last_length_ = 1;
};

}  // namespace ration::pool
