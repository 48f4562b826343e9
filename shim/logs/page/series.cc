// Of the points in a bucket of time, keeps the first, the last, and the extremes of both figures (the method M4): a
// line through them touches every pixel that a line through all points would. Merging merged buckets loses no extreme
// either, so buckets can be widened while points are added.
#include "logs/page/series.h"

#include <algorithm>
#include <array>

namespace ration::logs {
namespace {

constexpr std::size_t kMost = 32'768;
constexpr std::size_t kKept = 6;  // points kept in a bucket

using Points = std::vector<Series::Point>;

// Appends the points of [first, last) that are kept. The range is one bucket and is not empty.
void keep(const Points &points, std::size_t first, std::size_t last, Points &kept) {
  std::array<std::size_t, kKept> stays{first, first, first, first, first, last - 1};
  for (std::size_t i = first; i < last; ++i) {
    const Series::Point &point = points[i];
    stays[1] = point.used > points[stays[1]].used ? i : stays[1];
    stays[2] = point.used < points[stays[2]].used ? i : stays[2];
    stays[3] = point.reserved > points[stays[3]].reserved ? i : stays[3];
    stays[4] = point.reserved < points[stays[4]].reserved ? i : stays[4];
  }
  std::sort(stays.begin(), stays.end());
  const auto end = std::unique(stays.begin(), stays.end());
  std::for_each(stays.begin(), end, [&](std::size_t i) { kept.push_back(points[i]); });
}

}  // namespace

void Series::add(const Point &point) {
  if (!points_.empty() && points_.back().used == point.used && points_.back().reserved == point.reserved) {
    return;
  }
  points_.push_back(point);
  if (points_.size() >= kMost) {
    reduce(kMost / 2);
  }
}

void Series::reduce(std::size_t most) {
  const std::size_t least = std::max(most, kKept);  // all in one bucket
  if (points_.size() > least) {
    merge();  // merges the points added since the last call
  }
  while (points_.size() > least) {
    width_ns_ *= 2;
    merge();
  }
}

void Series::merge() {
  Points kept;
  for (std::size_t first = 0; first < points_.size();) {
    std::size_t last = first + 1;
    while (last < points_.size() && points_[last].ts_ns / width_ns_ == points_[first].ts_ns / width_ns_) {
      ++last;
    }
    keep(points_, first, last, kept);
    first = last;
  }
  left_out_ += points_.size() - kept.size();
  points_ = std::move(kept);
}

}  // namespace ration::logs
