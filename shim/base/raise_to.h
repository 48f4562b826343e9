// Keeps the largest value seen so far. Layer: base. Threads: any; no lock. Relaxed memory order suffices, because no
// other memory is read because of this value.
#pragma once

#include <atomic>
#include <cstdint>

namespace ration {

inline void raise_to(std::atomic<std::uint64_t> &most, std::uint64_t value) noexcept {
  std::uint64_t before = most.load(std::memory_order_relaxed);
  while (before < value && !most.compare_exchange_weak(before, value, std::memory_order_relaxed)) {
  }
}

}  // namespace ration
