#include "base/fork_exclusion.h"

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "catch.h"

using ration::ForkExclusion;

namespace {

template <class Body>
int exit_code_of_fork(const Body &body) {
  const pid_t child = fork();
  if (child == 0) {
    _exit(body());
  }
  int status = 0;
  return waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

struct Forks {
  static constexpr int kCount = 200;
  int inside = 0;      // of kCount children: forked while another thread was in a section
  int unreported = 0;  // of those: the section did not report it
};

// Of the time of the other thread, nearly all is spent in sections.
Forks forks_beside_sections() {
  std::atomic<bool> inside{false};
  std::atomic<bool> done{false};
  std::atomic<int> failed{0};
  std::thread other([&] {
    while (!done) {
      const ForkExclusion exclusion;
      {
        const ForkExclusion nested;  // its end must not end the outer one
      }
      inside = true;
      for (int turn = 0; turn < 1000; ++turn) {
        std::this_thread::yield();
      }
      failed += exclusion.failed() ? 1 : 0;
      inside = false;
    }
  });
  Forks forks;
  for (int fork = 0; fork < Forks::kCount; ++fork) {
    const int before = failed;
    if (exit_code_of_fork([&] { return inside ? 1 : 0; }) == 1) {
      ++forks.inside;
      while (failed == before && inside) {
        std::this_thread::yield();
      }
      forks.unreported += failed == before ? 1 : 0;
    }
  }
  done = true;
  other.join();
  return forks;
}

}  // namespace

TEST_CASE("forks wait for a section, or the section reports them") {
  const Forks forks = forks_beside_sections();
  CHECK(forks.unreported == 0);
  CHECK(forks.inside < Forks::kCount / 2);  // a section that lasts longer than a fork waits is met inside
}

TEST_CASE("a thread that forks inside its own section goes on, and the section reports it") {
  const ForkExclusion exclusion;
  CHECK(exit_code_of_fork([] { return 0; }) == 0);
  CHECK(exclusion.failed());
}

TEST_CASE("a section that ends in a forked child leaves the sections of the child intact") {
  CHECK(exit_code_of_fork([] {
          {
            const ForkExclusion exclusion;
            const pid_t child = fork();
            if (child != 0) {
              int status = 0;
              return waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : 2;
            }
          }
          return forks_beside_sections().inside < Forks::kCount / 2 ? 0 : 1;
        }) == 0);
}
