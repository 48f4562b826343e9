// Keeps forks out of a section whose intermediate state a forked child must not inherit: open descriptors, locks of
// libc. Uses pthread_atfork(3), so it does not see a child that is made without fork handlers.
// Layer: base. Threads: any; sections may nest and overlap.
#pragma once

#include <cstdint>

namespace ration {

// From now on runs `callback` in every forked child. This includes the child of a fork that is already waiting for a
// section, for which glibc 2.36 would not run a newly registered handler. Adding a callback twice is harmless. Returns
// false if there is no room for another callback.
bool call_in_forked_child(void (*callback)()) noexcept;

// While such an object exists, new forks wait. Its constructor waits for forks in progress, but not beyond
// `deadline_ns` (on the clock of now_ns()). A fork waits at most 50 ms, because the forking thread may hold a lock that
// the caller needs.
// Design: design/ledger.md#forks
// Design: design/first-use.md#forks-meanwhile
class ForkExclusion {
 public:
  static constexpr std::uint64_t kLongestNs = 50'000'000;

  explicit ForkExclusion(std::uint64_t deadline_ns);
  ForkExclusion();  // waits at most kLongestNs
  ~ForkExclusion();
  ForkExclusion(const ForkExclusion &) = delete;
  ForkExclusion &operator=(const ForkExclusion &) = delete;
  // True if a fork may nevertheless have run during the section.
  bool failed() const;

 private:
  std::uint64_t unwaited_before_;
  unsigned generation_;
  bool no_forks_;
};

}  // namespace ration
