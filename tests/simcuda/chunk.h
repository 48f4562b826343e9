// A piece of device memory that a memory pool has reserved, and its blocks: multiples of 512 bytes, first fit. A
// stream-ordered free carries a mark; the caller decides which streams may reuse the memory before the mark is reached.
// Layer: stream.h. Threads: under Driver::mutex.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <optional>

#include "tests/simcuda/stream.h"

namespace simcuda {

class Chunk {
 public:
  Chunk(std::uint64_t base, std::uint64_t bytes)
      : bytes_(bytes), free_(bytes), ranges_{{base, Range{bytes, false, {}}}} {}

  // The address of a block. Memory is usable if no free of it is pending, or if `usable` accepts the pending free.
  std::optional<std::uint64_t> take(std::uint64_t bytes, const std::function<bool(const Mark &)> &usable);
  // Returns the block's size. REQUIRES: take() returned the address.
  std::uint64_t give(std::uint64_t address, Mark pending_free);

  // Removes the pending frees that `passed` accepts, so that any stream may use their memory.
  void reconcile(const std::function<bool(const Mark &)> &passed);
  // True if the chunk contains no block and no free in it is pending.
  bool idle() const { return pending_ == 0 && free_ == bytes_; }
  std::uint64_t bytes() const { return bytes_; }

 private:
  struct Range {
    std::uint64_t bytes = 0;
    bool used = false;
    Mark pending_free;
    bool pending() const { return !used && pending_free.stream != nullptr; }
    bool clean() const { return !used && pending_free.stream == nullptr; }
  };
  using Ranges = std::map<std::uint64_t, Range>;

  std::uint64_t carve(Ranges::iterator first, std::uint64_t bytes);
  Ranges::iterator merge_with_next(Ranges::iterator range);

  std::uint64_t bytes_;
  std::uint64_t free_;         // in no block
  std::uint64_t pending_ = 0;  // number of pieces whose free is pending
  Ranges ranges_;              // covers the whole chunk, without gaps
};

}  // namespace simcuda
