// Named figures, each the minimum of many rounds, and the JSON file from which the table is made.
// Threads: one.
#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <string>

namespace ration::bench {

using Clock = std::chrono::steady_clock;

inline double ns_between(Clock::time_point begin, Clock::time_point end) {
  return std::chrono::duration<double, std::nano>(end - begin).count();
}

// Time per call or pair; `work` makes `count` of them.
template <class Work>
double ns_each(std::size_t count, Work &&work) {
  const Clock::time_point begin = Clock::now();
  work();
  return ns_between(begin, Clock::now()) / static_cast<double>(count);
}

// The yardstick of most figures: an uncontended lock and unlock of a std::mutex. REQUIRES: a SecondThread.
double mutex_pair_ns(std::size_t pairs);

struct Measured {
  std::string unit;
  double value;
};

class Figures {
 public:
  // Keeps the minimum, because a disturbance can only add to a round's time.
  void least(const std::string &name, const std::string &unit, double value);
  void set(const std::string &name, const std::string &unit, double value);

  // Prints one line for each figure, and writes the figures to the file `json` unless that is empty. Throws on failure.
  void report(const std::string &bench, const std::string &json) const;

 private:
  std::map<std::string, Measured> figures_;
};

}  // namespace ration::bench
