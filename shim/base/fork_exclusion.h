// Keeps forks out of a section whose state a forked child must not inherit half-way: open descriptors, locks of libc.
// Works through pthread_atfork(3): a child that is made without it is not covered.
// Layer: base. Threads: any; sections may nest and overlap.
#pragma once

#include <cstdint>

namespace ration {

// `callback` runs in every child that is forked from now on, also by a fork that waits for a section now: glibc 2.36
// runs no handler in a child that was registered after its fork began. Adding one twice is harmless. False: no place.
bool call_in_forked_child(void (*callback)()) noexcept;

// While one lives, new forks wait; its constructor waits for forks in progress. Neither side waits beyond `deadline_ns`
// (of now_ns()) or 50 ms, because a fork may itself wait for a lock of the caller.
// Design: design/ledger.md#forks
// Design: design/first-use.md#forks-meanwhile
class ForkExclusion {
 public:
  static constexpr std::uint64_t kLongestNs = 50'000'000;

  explicit ForkExclusion(std::uint64_t deadline_ns);
  ForkExclusion();  // with the longest deadline
  ~ForkExclusion();
  ForkExclusion(const ForkExclusion &) = delete;
  ForkExclusion &operator=(const ForkExclusion &) = delete;
  // Whether a forked child may have inherited the section nevertheless.
  bool failed() const;

 private:
  std::uint64_t unwaited_before_;
  unsigned generation_;
  bool no_forks_;
};

}  // namespace ration
