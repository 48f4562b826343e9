// The measured work: given a number of live blocks, frees a random block and allocates a block of another size,
// repeatedly. Sizes are log-uniform, from 256 bytes upwards. Threads: objects are independent; replacers of one memory
// may run concurrently where the memory allows it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "shapes/random.h"

namespace ration::bench {

inline constexpr std::uint32_t kLeastBytes = 256;
inline constexpr std::uint32_t kMostBytes = 64U << 20U;
inline constexpr std::uint32_t kMostBytesOfMany = 4U << 20U;

class Random : public shapes::Random {
 public:
  using shapes::Random::Random;
  std::uint32_t below(std::uint32_t bound);
  std::uint32_t log_uniform(std::uint32_t least, std::uint32_t most);
};

// Drawn in advance, outside the measured time. The steps may be repeated any number of times.
struct Churn {
  struct Step {
    std::uint32_t victim;
    std::uint32_t bytes;
  };
  std::vector<std::uint32_t> first_bytes;  // size of each initially live block
  std::vector<Step> steps;
  std::uint64_t peak_bytes;  // peak of live bytes, for any number of repetitions
};
Churn draw_churn(std::uint32_t live, std::uint32_t most_bytes, std::uint64_t seed);

// Memory: `std::uintptr_t allocate(std::uint64_t bytes)` and `void free(std::uintptr_t)`.
template <class Memory>
class Replacer {
 public:
  // Both must outlive this object.
  Replacer(Memory &memory, const Churn &churn) : memory_(memory), churn_(churn) {
    for (const std::uint32_t bytes : churn.first_bytes) live_.push_back(memory.allocate(bytes));
  }
  ~Replacer() {
    for (const std::uintptr_t block : live_) memory_.free(block);
  }
  Replacer(const Replacer &) = delete;
  Replacer &operator=(const Replacer &) = delete;

  void replace(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      std::uintptr_t &block = next_victim();
      memory_.free(block);
      block = memory_.allocate(bytes_);
    }
  }

  // Like replace(), but calls `before()` before and `after_free()` or `after_allocate()` after each operation.
  template <class Before, class AfterFree, class AfterAllocate>
  void replace_watched(std::size_t count, Before before, AfterFree after_free, AfterAllocate after_allocate) {
    for (std::size_t i = 0; i < count; ++i) {
      std::uintptr_t &block = next_victim();
      before();
      memory_.free(block);
      after_free();
      before();
      block = memory_.allocate(bytes_);
      after_allocate();
    }
  }

 private:
  std::uintptr_t &next_victim() {
    if (at_ == churn_.steps.size()) at_ = 0;
    const Churn::Step &step = churn_.steps[at_++];
    bytes_ = step.bytes;
    return live_[step.victim];
  }

  Memory &memory_;
  const Churn &churn_;
  std::vector<std::uintptr_t> live_;
  std::size_t at_ = 0;
  std::uint32_t bytes_ = 0;
};

}  // namespace ration::bench
