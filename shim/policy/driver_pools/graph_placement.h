// Where a driver places a graph's blocks of one device: in the first room that is free by then, or above all others. A
// block lies nowhere in parts (an H100: 64 MiB, freed, then 128 take 192; 128, then 64 take 128).
// Layer: policy/driver_pools. Threads: one.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>

namespace ration::policy {

class GraphPlacement {
 public:
  // `free`: the number of its free, by which `is_over(free)` tells whether a block is surely freed before.
  template <class IsOver>
  void place(std::uint64_t bytes, std::size_t free, std::uint64_t &work, const IsOver &is_over) {
    std::uint64_t at = 0;  // the end of what is occupied so far
    auto next = pieces_.begin();
    for (; next != pieces_.end() && (next->first < at || next->first - at < bytes); ++next) {
      at = is_over(next->second.free) ? at : std::max(at, next->second.end);
      ++work;
    }
    if (next == pieces_.end() && top_ - std::min(top_, at) < bytes) {
      at = top_;
    }
    cut(at, at + bytes, next);
    pieces_.emplace(at, Piece{at + bytes, free});
    top_ = std::max(top_, at + bytes);
  }
  std::uint64_t top() const { return top_; }

 private:
  struct Piece {
    std::uint64_t end;
    std::size_t free;  // of its block
  };
  using Pieces = std::multimap<std::uint64_t, Piece>;  // by begin

  // What was there before: all of it is over when the new block begins, and again when that one is.
  void cut(std::uint64_t begin, std::uint64_t end, Pieces::iterator last) {
    for (auto each = pieces_.begin(); each != last;) {
      const auto piece = each++;
      if (piece->second.end <= begin || piece->first >= end) {
        continue;
      }
      if (piece->second.end > end) {
        pieces_.emplace_hint(each, end, piece->second);
      }
      if (piece->first < begin) {
        piece->second.end = begin;
      } else {
        pieces_.erase(piece);
      }
    }
  }

  Pieces pieces_;
  std::uint64_t top_ = 0;
};

}  // namespace ration::policy
