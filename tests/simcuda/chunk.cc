#include "tests/simcuda/chunk.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace simcuda {

std::optional<std::uint64_t> Chunk::take(std::uint64_t bytes, const std::function<bool(const Mark &)> &usable) {
  if (free_ < bytes) return std::nullopt;
  auto first = ranges_.end();
  std::uint64_t run = 0;
  for (auto range = ranges_.begin(); range != ranges_.end(); ++range) {
    if (range->second.used || !(range->second.clean() || usable(range->second.pending_free))) {
      run = 0;
      continue;
    }
    if (run == 0) first = range;
    run += range->second.bytes;
    if (run >= bytes) return carve(first, bytes);
  }
  return std::nullopt;
}

// The rest of the last piece stays dependent on the same pending free.
std::uint64_t Chunk::carve(Ranges::iterator first, std::uint64_t bytes) {
  const std::uint64_t address = first->first;
  auto piece = first;
  for (std::uint64_t left = bytes; left > 0; piece = ranges_.erase(piece)) {
    const Range range = piece->second;
    const std::uint64_t part = std::min(left, range.bytes);
    if (range.pending() && part == range.bytes) --pending_;
    if (part < range.bytes) ranges_.emplace(piece->first + part, Range{range.bytes - part, false, range.pending_free});
    left -= part;
  }
  ranges_.emplace(address, Range{bytes, true, {}});
  free_ -= bytes;
  return address;
}

std::uint64_t Chunk::give(std::uint64_t address, Mark pending_free) {
  const auto range = ranges_.find(address);
  range->second.used = false;
  range->second.pending_free = std::move(pending_free);
  const std::uint64_t bytes = range->second.bytes;
  free_ += bytes;
  if (range->second.pending()) ++pending_;
  merge_with_next(range);
  if (range != ranges_.begin()) merge_with_next(std::prev(range));
  return bytes;
}

void Chunk::reconcile(const std::function<bool(const Mark &)> &passed) {
  if (pending_ == 0) return;
  for (auto &[address, range] : ranges_) {
    if (range.pending() && passed(range.pending_free)) {
      range.pending_free = {};
      --pending_;
    }
  }
  for (auto range = ranges_.begin(); range != ranges_.end();) range = merge_with_next(range);
}

// The range to go on with. Two pending frees are never merged: they complete independently.
Chunk::Ranges::iterator Chunk::merge_with_next(Ranges::iterator range) {
  const auto next = std::next(range);
  if (next == ranges_.end() || !range->second.clean() || !next->second.clean()) return next;
  range->second.bytes += next->second.bytes;
  ranges_.erase(next);
  return range;
}

}  // namespace simcuda
