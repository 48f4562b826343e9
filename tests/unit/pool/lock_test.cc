#include "pool/lock.h"

#include <pthread.h>
#include <sys/types.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "catch.h"

using namespace ration::pool;

namespace {

// The kernel's view: state S in /proc.
bool is_asleep(pid_t thread) {
  std::ifstream file("/proc/self/task/" + std::to_string(thread) + "/stat");
  std::string text;
  std::getline(file, text);
  const std::size_t name_ends = text.rfind(')');
  return name_ends != std::string::npos && text.compare(name_ends, 3, ") S") == 0;
}

constexpr int kThreads = 8;
constexpr int kTurns = 20'000;

// Longer than a waiter spins and yields, so that it sleeps.
void yield_often() {
  for (int turn = 0; turn < 20'000; ++turn) std::this_thread::yield();
}

}  // namespace

TEST_CASE("one of many threads at a time holds the lock") {
  Mutex mutex;
  std::uint64_t turns = 0;  // not atomic: overlapping increments are lost
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      for (int turn = 0; turn < kTurns; ++turn) {
        const Guard guard(mutex);
        ++turns;
      }
    });
  }
  for (std::thread &thread : threads) thread.join();
  CHECK(turns == std::uint64_t{kThreads} * kTurns);
}

TEST_CASE("a thread that sleeps instead of spinning gets the lock once it is free") {
  Mutex mutex;
  std::atomic<bool> waiting{false};
  std::atomic<bool> has_it{false};
  mutex.lock();
  std::thread other([&] {
    waiting = true;
    const Guard guard(mutex);
    has_it = true;
  });
  while (!waiting) std::this_thread::yield();
  yield_often();
  CHECK_FALSE(has_it);
  mutex.unlock();
  other.join();
  CHECK(has_it);
}

TEST_CASE("a wait for a change releases the lock and holds it again afterwards") {
  Mutex mutex;
  Condition changed;
  bool ready = false;  // guarded by the lock
  int woken = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      const Guard guard(mutex);
      while (!ready) changed.wait(mutex);
      ++woken;
    });
  }
  {
    const Guard guard(mutex);  // would block for ever if the waiter kept it
    ready = true;
    changed.notify_all();
  }
  for (std::thread &thread : threads) thread.join();
  CHECK(woken == kThreads);
}

TEST_CASE("no change is lost between the check and the wait") {
  Mutex mutex;
  Condition changed;
  int turn = 0;  // even: this thread's
  std::thread other([&] {
    for (int i = 0; i < kTurns / 10; ++i) {
      const Guard guard(mutex);
      while (turn % 2 == 0) changed.wait(mutex);
      ++turn;
      changed.notify_all();
    }
  });
  for (int i = 0; i < kTurns / 10; ++i) {
    const Guard guard(mutex);
    while (turn % 2 != 0) changed.wait(mutex);
    ++turn;
    changed.notify_all();
  }
  other.join();
  CHECK(turn == 2 * (kTurns / 10));
}

TEST_CASE("a thread that waits for a lock is not cancelled there") {
  struct Shared {
    Mutex mutex;
    std::atomic<pid_t> id{0};
    bool had_it = false;
  } shared;
  shared.mutex.lock();
  pthread_t waiter{};
  REQUIRE(pthread_create(
              &waiter, nullptr,
              [](void *given) -> void * {
                Shared &of_test = *static_cast<Shared *>(given);
                of_test.id = gettid();
                [&of_test]() noexcept {
                  const Guard guard(of_test.mutex);
                  of_test.had_it = true;
                }();
                pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, nullptr);
                return given;
              },
              &shared) == 0);
  while (shared.id == 0) std::this_thread::yield();
  REQUIRE(pthread_cancel(waiter) == 0);
  while (!is_asleep(shared.id)) std::this_thread::yield();  // it sleeps between polls
  shared.mutex.unlock();
  void *result = nullptr;
  REQUIRE(pthread_join(waiter, &result) == 0);
  CHECK(shared.had_it);
  CHECK(result == &shared);
}
