#include "base/fork_exclusion.h"

#include <pthread.h>
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
  static constexpr int kCount = 20;
  int inside = 0;      // of kCount children: forked while another thread was in a section
  int unreported = 0;  // of those: the section did not report it
};

std::atomic<bool> forking{false};
std::atomic<bool> in_forked_child{false};

// Handlers before a fork run in the reverse order of their registration: this one before that of the exclusion.
void watch_first() {
  { const ForkExclusion registers_its_handlers; }
  static const int registered = pthread_atfork([] { forking = true; }, nullptr, nullptr);
  REQUIRE(registered == 0);
}

// One section for each fork: it lasts until the fork has begun, and a while longer.
Forks forks_beside_sections() {
  watch_first();
  Forks forks;
  for (int fork = 0; fork < Forks::kCount; ++fork) {
    forking = false;
    std::atomic<bool> inside{false};
    bool failed = false;
    std::thread other([&] {
      const ForkExclusion exclusion;
      {
        const ForkExclusion nested;  // its end must not end the outer one
      }
      inside = true;
      while (!forking) {
        std::this_thread::yield();
      }
      for (int turn = 0; turn < 20'000; ++turn) {  // no yields: on a busy machine each may last as long as a fork waits
        forking.load();
      }
      failed = exclusion.failed();
      inside = false;
    });
    while (!inside) {
      std::this_thread::yield();
    }
    const bool found_inside = exit_code_of_fork([&] { return inside ? 1 : 0; }) == 1;
    other.join();
    forks.inside += found_inside ? 1 : 0;
    forks.unreported += found_inside && !failed ? 1 : 0;
  }
  return forks;
}

}  // namespace

TEST_CASE("forks wait for a section, or the section reports them") {
  const Forks forks = forks_beside_sections();
  CHECK(forks.unreported == 0);
  CHECK(forks.inside < Forks::kCount);  // a section that lasts longer than a fork waits is met inside
}

TEST_CASE("a callback that is added while a fork waits runs in its child") {
  watch_first();
  int ran = 0;
  for (int fork = 0; fork < Forks::kCount && ran == 0; ++fork) {
    forking = false;
    std::atomic<bool> inside{false};
    std::thread other([&] {
      const ForkExclusion exclusion;
      inside = true;
      while (!forking) {
        std::this_thread::yield();
      }
      REQUIRE(ration::call_in_forked_child([] { in_forked_child = true; }));
    });
    while (!inside) {
      std::this_thread::yield();
    }
    ran += exit_code_of_fork([] { return in_forked_child ? 1 : 0; });
    other.join();
  }
  CHECK(ran == 1);
  CHECK_FALSE(in_forked_child);
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
          return forks_beside_sections().inside < Forks::kCount ? 0 : 1;
        }) == 0);
}
