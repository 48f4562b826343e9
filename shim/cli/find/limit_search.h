// Chooses which limits to try in order to find the smallest one that suffices. Layer: cli. Threads: a value.
//
// The search first tries limits around the peak of a run without a limit, because most programs need slightly more than
// the peak. If a limit below the peak suffices, it tries the smallest limit that can be set and then bisects. Some
// programs need more memory under a larger limit. Several limits may then be local minima, and the search finds one of
// them. It always returns a limit that was tried. If the tolerance allows, the limits tried are whole pages, because a
// pool may be unable to use granules under other limits.
#pragma once

#include <cstdint>
#include <optional>

#include "config/values/size.h"

namespace ration::cli {

// The permitted error of the result: one page of a pool, or a share too small to matter to a user, whichever is larger.
struct Tolerance {
  std::uint64_t bytes = 2 * config::kMiB;
  double share = 0.005;  // a fraction of a limit that suffices

  std::uint64_t at(std::uint64_t limit) const;
};

// Design: design/log.md#limit-search
class LimitSearch {
 public:
  static constexpr std::uint64_t kLeast = config::kMiB;  // the smallest limit that can be set

  // `ceiling`: a limit that suffices, as shown by a run without a limit.
  LimitSearch(std::uint64_t peak, std::uint64_t ceiling, Tolerance tolerance);

  // The limit to try next; nullopt if the search is over.
  std::optional<std::uint64_t> next() const;
  // Records whether the limit that next() returned suffices.
  void record(bool suffices);
  std::uint64_t sufficient() const { return sufficient_; }

 private:
  enum class Stage { kAbove, kBelow, kLeast, kBetween };

  std::uint64_t between() const;

  const std::uint64_t peak_;
  const Tolerance tolerance_;
  const std::uint64_t step_;  // the limits tried are multiples of this
  std::uint64_t failing_ = kLeast - 1;
  std::uint64_t sufficient_;
  std::uint64_t slack_;  // how far above the peak the next limit is
  Stage stage_;
};

}  // namespace ration::cli
