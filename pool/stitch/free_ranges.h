// Free parts of a reserved address range.
// Layer: pool, a leaf (standard library only). Threads: none of its own; the caller locks.
#pragma once

#include <cstdint>
#include <map>

#include "pool/unit.h"

namespace ration::pool::stitch {

class FreeRanges {
 public:
  struct Range {
    Address address = 0;
    std::uint64_t bytes = 0;
  };
  // Takes `bytes` from the lowest range that has them; returns the address, or 0 if none has. Throws std::bad_alloc.
  Address take(std::uint64_t bytes) {
    for (auto at = free_.begin(); at != free_.end(); ++at) {
      if (at->second < bytes) continue;
      const Address address = at->first;
      if (at->second > bytes) free_.emplace(address + bytes, at->second - bytes);
      free_.erase(address);
      free_bytes_ -= bytes;
      return address;
    }
    return 0;
  }
  // The address that take() would return, or 0.
  [[nodiscard]] Address next(std::uint64_t bytes) const {
    for (const auto &[address, size] : free_) {
      if (size >= bytes) return address;
    }
    return 0;
  }
  // Frees a range; returns it merged with the free ranges next to it. Throws std::bad_alloc.
  Range give(Address address, std::uint64_t bytes) {
    auto at = free_.emplace(address, bytes).first;
    free_bytes_ += bytes;
    if (const auto after = std::next(at); after != free_.end() && address + bytes == after->first) {
      at->second += after->second;
      free_.erase(after);
    }
    if (at != free_.begin()) {
      const auto before = std::prev(at);
      if (before->first + before->second == address) {
        before->second += at->second;
        free_.erase(at);
        at = before;
      }
    }
    return {at->first, at->second};
  }
  [[nodiscard]] std::uint64_t free_bytes() const { return free_bytes_; }
  // The size of the free range that starts at `address`, or 0.
  [[nodiscard]] std::uint64_t at(Address address) const {
    const auto found = free_.find(address);
    return found == free_.end() ? 0 : found->second;
  }
  [[nodiscard]] const std::map<Address, std::uint64_t> &all() const { return free_; }

 private:
  std::map<Address, std::uint64_t> free_;
  std::uint64_t free_bytes_ = 0;
};

}  // namespace ration::pool::stitch
