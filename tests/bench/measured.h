// Figures by name, the least of what many rounds saw, and the JSON file that the table is made of.
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

// Of one of the `count` calls or pairs that `work` makes.
template <class Work>
double ns_each(std::size_t count, Work &&work) {
  const Clock::time_point begin = Clock::now();
  work();
  return ns_between(begin, Clock::now()) / static_cast<double>(count);
}

// The yardstick of most figures: an uncontended lock and unlock of a std::mutex.
double mutex_pair_ns(std::size_t pairs);

struct Measured {
  std::string unit;
  double value;
};

class Figures {
 public:
  // Keeps the least: what disturbs a round only ever adds to it.
  void least(const std::string &name, const std::string &unit, double value);
  void set(const std::string &name, const std::string &unit, double value);

  // Prints one line a figure and, where `json` is not empty, writes them there. Throws where it cannot.
  void report(const std::string &bench, const std::string &json) const;

 private:
  std::map<std::string, Measured> figures_;
};

}  // namespace ration::bench
