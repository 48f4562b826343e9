#include "cli/find/limit_search.h"

#include <algorithm>

namespace ration::cli {
namespace {

constexpr std::uint64_t kPage = 2 * config::kMiB;
constexpr std::uint64_t kGranules = 2 * kPage;  // what a pool usually takes beyond the peak

std::uint64_t multiple_from(std::uint64_t bytes, std::uint64_t step) {
  return (bytes + step - 1) / step * step;
}

}  // namespace

std::uint64_t Tolerance::at(std::uint64_t limit) const {
  return std::max(bytes, static_cast<std::uint64_t>(share * static_cast<double>(limit)));
}

LimitSearch::LimitSearch(std::uint64_t peak, std::uint64_t ceiling, Tolerance tolerance)
    : peak_(peak),
      tolerance_(tolerance),
      step_(tolerance.at(peak) >= kPage ? kPage : 1),
      sufficient_(std::max(ceiling, kLeast)),
      slack_(std::max(tolerance.at(peak), kGranules)),
      stage_(multiple_from(peak + slack_, step_) < sufficient_ ? Stage::kAbove : Stage::kBelow) {
  if (peak <= kLeast + tolerance.at(peak)) {
    stage_ = Stage::kLeast;
  }
}

std::optional<std::uint64_t> LimitSearch::next() const {
  switch (stage_) {
    case Stage::kAbove:
      return multiple_from(peak_ + slack_, step_);
    case Stage::kBelow:
      return std::max(multiple_from(peak_ - tolerance_.at(peak_), step_), kLeast);
    case Stage::kLeast:
      return kLeast;
    case Stage::kBetween:
      break;
  }
  const std::uint64_t width = sufficient_ - failing_;
  const std::uint64_t middle = between();
  return width > tolerance_.at(sufficient_) && middle < sufficient_ ? std::optional(middle) : std::nullopt;
}

// The multiple of `step_` below the middle, or else the next one above it; `sufficient_` if none is between the bounds.
std::uint64_t LimitSearch::between() const {
  const std::uint64_t middle = failing_ + (sufficient_ - failing_) / 2;
  const std::uint64_t below = middle / step_ * step_;
  return below > failing_ ? below : std::min(multiple_from(middle + 1, step_), sufficient_);
}

void LimitSearch::record(bool suffices) {
  const std::uint64_t tried = next().value_or(sufficient_);
  (suffices ? sufficient_ : failing_) = tried;
  if (stage_ == Stage::kAbove && !suffices) {
    slack_ *= 2;
    stage_ = multiple_from(peak_ + slack_, step_) < sufficient_ ? Stage::kAbove : Stage::kBetween;
  } else if (stage_ == Stage::kAbove) {
    stage_ = failing_ >= peak_ ? Stage::kBetween : Stage::kBelow;
  } else if (stage_ == Stage::kBelow && suffices && sufficient_ > kLeast) {
    stage_ = Stage::kLeast;
  } else if (stage_ == Stage::kLeast && suffices) {
    failing_ = kLeast - 1;
    stage_ = Stage::kBetween;
  } else {
    stage_ = Stage::kBetween;
  }
}

}  // namespace ration::cli
