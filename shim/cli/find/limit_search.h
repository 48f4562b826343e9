// Which limits to try, to find the smallest one that suffices. Layer: cli. Threads: a value.
//
// Around the peak of the run without a limit first: most programs need it and a little more. Where less than that
// suffices, the least limit that there is, then by halves. A program whose needs do not rise with the limit alone has
// several edges; this finds one of them, and `sufficient()` was tried. Where the tolerance allows it, limits are in
// whole pages: with others a pool may not be made of granules.
#pragma once

#include <cstdint>
#include <optional>

#include "config/values/size.h"

namespace ration::cli {

// The larger of both: a page of a pool, and what no one would set a limit by.
struct Tolerance {
  std::uint64_t bytes = 2 * config::kMiB;
  double share = 0.005;  // of the limit that suffices

  std::uint64_t at(std::uint64_t limit) const;
};

// Design: design/log.md#limit-search
class LimitSearch {
 public:
  static constexpr std::uint64_t kLeast = config::kMiB;  // that can be set

  // `ceiling`: suffices, as a run without a limit has shown.
  LimitSearch(std::uint64_t peak, std::uint64_t ceiling, Tolerance tolerance);

  // The limit to try next; nothing: the search has ended.
  std::optional<std::uint64_t> next() const;
  // Of that one.
  void record(bool suffices);
  std::uint64_t sufficient() const { return sufficient_; }

 private:
  enum class Stage { kAbove, kBelow, kLeast, kBetween };

  std::uint64_t between() const;

  const std::uint64_t peak_;
  const Tolerance tolerance_;
  const std::uint64_t step_;  // limits are multiples of it
  std::uint64_t failing_ = kLeast - 1;
  std::uint64_t sufficient_;
  std::uint64_t slack_;  // above the peak
  Stage stage_;
};

}  // namespace ration::cli
