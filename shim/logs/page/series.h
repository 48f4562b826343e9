// What a device held over time, in a bounded number of points. Layer: logs. Threads: none of its own.
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

  // REQUIRES: no `ts_ns` before the last one's.
  void add(const Point &point);
  // At most `most` points, or as many as can be had with every extreme.
  void reduce(std::size_t most);
  const std::vector<Point> &points() const { return points_; }
  std::uint64_t left_out() const { return left_out_; }

 private:
  void merge();

  std::vector<Point> points_;
  std::uint64_t width_ns_ = 1;  // of a bucket
  std::uint64_t left_out_ = 0;
};

}  // namespace ration::logs
