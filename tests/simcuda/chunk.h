// One piece of a device that a memory pool has for itself, and the blocks in it: multiples of 512 bytes, first fit.
// What was freed in stream order comes behind a mark; who may use it before that has been reached is the caller's to
// say. Layer: stream.h. Threads: under Driver::mutex.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <optional>

#include "tests/simcuda/stream.h"

namespace simcuda {

class Chunk {
 public:
  Chunk(std::uint64_t base, std::uint64_t bytes) : bytes_(bytes), ranges_{{base, Range{bytes, false, {}}}} {}

  struct Block {
    std::uint64_t address = 0;
    Mark behind;  // the latest free whose memory is in it that has not been reached yet
  };
  // Memory is usable that nobody frees any more, or whose free `usable` accepts.
  std::optional<Block> take(std::uint64_t bytes, const std::function<bool(const Mark &)> &usable);
  // Answers the block's size. REQUIRES: take() gave the address.
  std::uint64_t give(std::uint64_t address, Mark behind);

  // Forgets the frees that `passed` accepts: their memory is anybody's.
  void settle(const std::function<bool(const Mark &)> &passed);
  // Nothing is in it, and no free of it is outstanding.
  bool idle() const;
  std::uint64_t bytes() const { return bytes_; }

 private:
  struct Range {
    std::uint64_t bytes = 0;
    bool used = false;
    Mark behind;
    bool clean() const { return !used && behind.stream == nullptr; }
  };
  using Ranges = std::map<std::uint64_t, Range>;

  Block carve(Ranges::iterator first, std::uint64_t bytes);
  void merge_clean();

  std::uint64_t bytes_;
  Ranges ranges_;  // all of the chunk, without gaps
};

}  // namespace simcuda
