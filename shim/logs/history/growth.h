// Whether what a caller holds grows while a program works: samples of it, in bounded memory, and the rule. Layer: logs.
// Threads: none of its own.
//
// Work is counted in frees. A program that loads frees little, so however many calls it makes, that is no work. Of one
// that frees nothing nobody can tell, so that what rises to its end grows.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace ration::logs {

struct Rise {
  std::uint64_t from = 0, to = 0;  // the least that was held in the first and in the last part of what was looked at
};

// A part of the run in which its device had so many frees as in each other one.
struct Stretch {
  std::uint64_t least = 0;  // that the caller held
  std::uint64_t begun_ns = 0;
  std::uint64_t allocs = 0, frees = 0;  // of the device
};

// `run`: up to the last allocation. Looked at is its end, with or without the last sixteenth, after one, three or five
// eighths of its work or of its time: what was before is warm-up. In nine equal parts of it the least that was held
// never falls, is more than in the part before in at least seven of the eight steps, the last among them, and rises by
// a twentieth of what it is at last, or by 1 MiB. Before, it was at most half as far up: else it goes up and down. The
// last rise is not before `quiet_ns`, and the device has a free for 16 allocations: else it still loads.
std::optional<Rise> rise_of(std::span<const Stretch> run, std::uint64_t quiet_ns);

// The work of a device: when each `stride`th free came, which doubles as there are more; where there are next to none,
// each `stride`th allocation.
class Work {
 public:
  void alloc(std::uint64_t ts_ns);
  void free(std::uint64_t ts_ns);

  [[nodiscard]] std::uint64_t allocs() const { return allocs_.count; }
  [[nodiscard]] std::uint64_t frees() const { return frees_.count; }
  [[nodiscard]] bool is_counted_in_allocs() const;
  // Of no caller; up to the last allocation.
  [[nodiscard]] std::vector<Stretch> stretches() const;
  // Half of the time to the last allocation; and of the time to the end of the run, but for its last second.
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

// The least that one caller held, from each `stride`th free of its device to the next, and likewise of allocations.
class Levels {
 public:
  // Before what is held changes, and the work.
  void note(const Work &work, std::uint64_t held);
  // REQUIRES: noted after the last change of `work`.
  [[nodiscard]] std::optional<Rise> rise(const Work &work, std::uint64_t end_ns) const;

 private:
  struct Samples {
    std::vector<std::uint64_t> least;
    std::uint64_t stride = 1;
    void note(std::uint64_t count, std::uint64_t held);
  };
  Samples by_allocs_, by_frees_;
};

}  // namespace ration::logs
