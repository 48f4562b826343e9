// Checks that no two live blocks overlap, and counts addresses that are handed out again.
// Layer: C++ alone. Threads: any; one lock.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <unordered_set>

namespace preload::pool {

class HandedOut {
 public:
  // Returns false if the block overlaps a live block.
  bool take(std::uint64_t address, std::uint64_t bytes) {
    const std::lock_guard guard(mutex_);
    again_ += seen_.insert(address).second ? 0 : 1;
    const auto after = live_.upper_bound(address);
    const bool free_behind = after == live_.end() || address + bytes <= after->first;
    const bool free_before = after == live_.begin() || std::prev(after)->first + std::prev(after)->second <= address;
    live_[address] = bytes;
    return free_behind && free_before;
  }
  // To be called before the free, because another thread may get the address at once.
  void give(std::uint64_t address) {
    const std::lock_guard guard(mutex_);
    live_.erase(address);
  }
  std::uint64_t again() {
    const std::lock_guard guard(mutex_);
    return again_;
  }

 private:
  std::mutex mutex_;
  std::map<std::uint64_t, std::uint64_t> live_;
  std::unordered_set<std::uint64_t> seen_;
  std::uint64_t again_ = 0;
};

}  // namespace preload::pool
