// The memory that the callers of a device held over time, in a bounded number of points. The callers that held most are
// kept separate; the others are added together. Each point says how much all of them held at one time; until the next
// point, the total never fell below that. Layer: logs. Threads: none of its own.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace ration::logs {

class CallerStack {
 public:
  static constexpr std::size_t kCallers = 8;  // kept apart; the last entry of `bytes` is for the others
  using Bytes = std::array<std::uint64_t, kCallers + 1>;
  struct Point {
    std::uint64_t ts_ns = 0;
    Bytes bytes{};
  };

  CallerStack() = default;
  // For each of `buckets` parts of the run, keeps the highest total and the lowest totals before and after it.
  CallerStack(std::uint64_t duration_ns, std::size_t buckets) : width_ns_(duration_ns / buckets + 1) {}

  // The caller with this rank holds `by` bytes more, or fewer if `is_less`.
  void change(std::uint64_t ts_ns, std::size_t rank, std::uint64_t by, bool is_less);
  void finish(std::uint64_t ts_ns);
  const std::vector<Point> &points() const { return points_; }

 private:
  struct Level : Point {
    std::uint64_t total = 0;
  };
  void enter(std::uint64_t bucket);
  void leave(std::uint64_t ts_ns);
  void add(std::uint64_t ts_ns, const Level &level);

  std::uint64_t width_ns_ = 1, bucket_ = 0;
  Level now_, highest_;                  // in the current bucket, like before_ and after_
  std::optional<Level> before_, after_;  // the lowest before and after highest_; after_ begins where highest_ ends
  std::vector<Point> points_;
};

}  // namespace ration::logs
