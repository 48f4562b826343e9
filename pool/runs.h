// Runs: blocks of one size, each requested while the one before is live. And how long one may yet become.
// Layer: pool, a leaf (standard library only). Threads: none of its own; the caller locks.
#pragma once

#include <cstdint>

#include "pool/granule.h"

namespace ration::pool {

class Runs {
 public:
  // A request was met. Of every size, for whatever comes in between ends a run.
  void met(std::uint64_t granules, Address address) noexcept {
    if (granules != granules_) begin();
    granules_ = granules;
    address_ = address;
  }
  [[nodiscard]] bool is_repeated(std::uint64_t granules) const noexcept { return granules == granules_; }
  [[nodiscard]] Address last_address() const noexcept { return address_; }

  void begin() noexcept {
    if (length_ > 1) last_length_ = length_;
    length_ = 1;
  }
  void go_on() noexcept { ++length_; }
  // Or likely to become so: a program repeats itself.
  [[nodiscard]] bool is_long() const noexcept { return length_ >= kLong || last_length_ >= kLong; }

 private:
  // Blocks. Pairs and handfuls of a size are better off by the hole's size (graph analytics, sampling of images).
  static constexpr std::uint32_t kLong = 16;

  std::uint64_t granules_ = 0;  // of the last request
  Address address_ = 0;         // that it got
  std::uint32_t length_ = 1;    // blocks so far
  std::uint32_t last_length_ = 1;
};

}  // namespace ration::pool
