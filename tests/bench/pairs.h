// The two kinds of pairs that are measured with the pool alone and through the whole library, with a thousand live
// blocks. One is an allocation and its immediate free, the other a free and an allocation of another size.
// `Memory` is as in churn.h. Threads: as many as the memory allows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace ration::bench {

inline constexpr std::uint64_t kSlabBytes = std::uint64_t{8} << 30U;
inline constexpr std::uint64_t kBlockBytes = 1U << 20U;

template <class Memory>
std::vector<std::uintptr_t> fill(Memory &memory) {
  constexpr std::size_t kLive = 1'000;
  std::vector<std::uintptr_t> blocks(kLive);
  for (std::uintptr_t &block : blocks) block = memory.allocate(kBlockBytes);
  return blocks;
}

template <class Memory>
void allocate_and_free(Memory &memory, std::size_t pairs) {
  for (std::size_t i = 0; i < pairs; ++i) memory.free(memory.allocate(kBlockBytes));
}

// Replaces every block in turn with a block of another size, but not in address order.
template <class Memory>
void replace(Memory &memory, std::vector<std::uintptr_t> &blocks, std::size_t pairs) {
  for (std::size_t i = 0; i < pairs; ++i) {
    std::uintptr_t &block = blocks[i * 7919 % blocks.size()];
    memory.free(block);
    block = memory.allocate(kBlockBytes / 2 + i * 104729 % kBlockBytes);
  }
}

}  // namespace ration::bench
