// The memory that a device held over time, in a bounded number of points. Layer: logs. Threads: none of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace ration::logs {

class Series {
 public:
  struct Point {
    std::uint64_t ts_ns = 0, used = 0, reserved = 0;
  };

  // REQUIRES: `ts_ns` is not before that of the last point.
  void add(const Point &point);
  // Reduces the points to at most `most`, or to at most six if `most` is less, and keeps all extremes.
  void reduce(std::size_t most);
  const std::vector<Point> &points() const { return points_; }
  std::uint64_t left_out() const { return left_out_; }

 private:
  void merge();

  std::vector<Point> points_;
  std::uint64_t width_ns_ = 1;  // width of a bucket
  std::uint64_t left_out_ = 0;
};

}  // namespace ration::logs
