// Detects whether the memory that a caller holds grows while the program works, from samples in bounded memory.
// Layer: logs. Threads: none of its own.
//
// Work is counted in frees. A program that is still loading frees little, so even its many calls do not count as work.
// If a program frees nothing, loading and working look alike, so a level that rises until the end counts as growth.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace ration::logs {

struct Rise {
  std::uint64_t from = 0, to = 0;  // the least memory held in the first and in the last part examined
};

// A part of the run. All parts of a run contain the same number of the device's frees.
struct Stretch {
  std::uint64_t least = 0;  // the least memory that the caller held
  std::uint64_t begun_ns = 0;
  std::uint64_t allocs = 0, frees = 0;  // the number of calls for the device
};

// Returns the rise, if there is one. `run`: the stretches up to the last allocation. The rule takes all stretches, or
// all but the last sixteenth, and skips a warm-up of one, three or five eighths of the work or time. It divides the
// rest into nine equal parts and takes the least memory held in each. In a rise, these minima never fall and increase
// in at least seven of the eight steps (including the last), in total by at least 1 MiB or 1/20 of the last minimum.
// Before these parts, the level was at most halfway up; otherwise it merely goes up and down. The last increase is not
// before `quiet_ns`, and there is at least one free per 16 allocations; otherwise the program is still loading.
std::optional<Rise> rise_of(std::span<const Stretch> run, std::uint64_t quiet_ns);

// The work of a device: the times of every `stride`th free. `stride` doubles as the number of frees grows. If there are
// almost no frees, allocations count instead.
class Work {
 public:
  void alloc(std::uint64_t ts_ns);
  void free(std::uint64_t ts_ns);

  [[nodiscard]] std::uint64_t allocs() const { return allocs_.count; }
  [[nodiscard]] std::uint64_t frees() const { return frees_.count; }
  [[nodiscard]] bool is_counted_in_allocs() const;
  // The stretches up to the last allocation, with `least` not yet set.
  [[nodiscard]] std::vector<Stretch> stretches() const;
  // The later of two times: halfway to the last allocation; and halfway to the end of the run, or one second before the
  // end if that is earlier.
  [[nodiscard]] std::uint64_t quiet_ns(std::uint64_t end_ns) const;

 private:
  struct Moment {
    std::uint64_t ts_ns = 0, allocs = 0;
  };
  struct Clock {
    std::vector<Moment> moments;
    std::uint64_t stride = 1, count = 0;
    void tick(std::uint64_t ts_ns, std::uint64_t allocs);
  };
  Clock allocs_, frees_;
  std::uint64_t frees_at_last_alloc_ = 0, first_alloc_ns_ = 0, last_alloc_ns_ = 0;
};

// The least memory that one caller held from each `stride`th free on its device to the next such free. Keeps the same
// by allocations instead of frees.
class Levels {
 public:
  // Call this before the held bytes or the work change.
  void note(const Work &work, std::uint64_t held);
  // As rise_of(). REQUIRES: note() was called after the last change of `work`.
  [[nodiscard]] std::optional<Rise> rise(const Work &work, std::uint64_t quiet_ns) const;

 private:
  struct Samples {
    std::vector<std::uint64_t> least;
    std::uint64_t stride = 1;
    void note(std::uint64_t count, std::uint64_t held);
  };
  Samples by_allocs_, by_frees_;
};

}  // namespace ration::logs
