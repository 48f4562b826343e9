// What the callers of a device held over time, those that held most apart and the others together: in a bounded number
// of points, each of which is what all of them held at once. From one to the next nobody held less in all than the
// first says. Layer: logs. Threads: none of its own.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace ration::logs {

class CallerStack {
 public:
  static constexpr std::size_t kCallers = 8;  // apart; the last of `bytes` is of the others
  using Bytes = std::array<std::uint64_t, kCallers + 1>;
  struct Point {
    std::uint64_t ts_ns = 0;
    Bytes bytes{};
  };

  CallerStack() = default;
  // Of each of `buckets` parts of the run the most that was held, and the least before and after that.
  CallerStack(std::uint64_t duration_ns, std::size_t buckets) : width_ns_(duration_ns / buckets + 1) {}

  // The caller of a rank holds `by` more, or less where `is_less`.
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
  Level now_, highest_;                  // the latter, and those below, of the bucket
  std::optional<Level> before_, after_;  // the least before and after the highest, the latter from when it was left
  std::vector<Point> points_;
};

}  // namespace ration::logs
