#include "tests/simcuda/chunk.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace simcuda {

std::optional<std::uint64_t> Chunk::take(std::uint64_t bytes, const std::function<bool(const Mark &)> &usable) {
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
    if (part < range.bytes) ranges_.emplace(piece->first + part, Range{range.bytes - part, false, range.pending_free});
    left -= part;
  }
  ranges_.emplace(address, Range{bytes, true, {}});
  return address;
}

std::uint64_t Chunk::give(std::uint64_t address, Mark pending_free) {
  Range &range = ranges_.at(address);
  range.used = false;
  range.pending_free = std::move(pending_free);
  const std::uint64_t bytes = range.bytes;
  merge_clean();
  return bytes;
}

void Chunk::reconcile(const std::function<bool(const Mark &)> &passed) {
  for (auto &[address, range] : ranges_) {
    if (!range.used && !range.clean() && passed(range.pending_free)) range.pending_free = {};
  }
  merge_clean();
}

bool Chunk::idle() const {
  return std::all_of(ranges_.begin(), ranges_.end(), [](const auto &range) { return range.second.clean(); });
}

// Two pending frees are never merged: they complete independently.
void Chunk::merge_clean() {
  for (auto range = ranges_.begin(); range != ranges_.end();) {
    const auto next = std::next(range);
    if (next != ranges_.end() && range->second.clean() && next->second.clean()) {
      range->second.bytes += next->second.bytes;
      ranges_.erase(next);
    } else {
      range = next;
    }
  }
}

}  // namespace simcuda
