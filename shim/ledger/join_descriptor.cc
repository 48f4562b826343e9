#include "ledger/join_descriptor.h"

#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>

#include "base/clock.h"
#include "base/wait.h"

namespace ration::ledger {
namespace {

constexpr std::uint64_t kMostWaitNs = 50'000'000;

constinit std::atomic<bool> between{false};      // a thread is opening the file
constinit std::atomic<int> under_way{0};         // forks
constinit std::atomic<std::uint64_t> passed{0};  // forks that ever went on without waiting
constinit std::atomic<bool> turn_taken{false};
constinit std::atomic<int> joining{-1};  // -1: none
constinit std::atomic<dev_t> joining_device{0};
constinit std::atomic<ino_t> joining_inode{0};

// Both sides store first, then load, so one of the two sees the other.
void before_fork() {
  const std::uint64_t deadline = now_ns() + kMostWaitNs;
  for (Waiter waiter;;) {
    under_way.fetch_add(1);
    if (!between.load() || now_ns() > deadline) {
      passed.fetch_add(1);
      return;
    }
    under_way.fetch_sub(1);
    wake_waiters();
    waiter.pause();
  }
}

void after_fork() {
  under_way.fetch_sub(1);
}

void in_child() {
  under_way.store(0);
  between.store(false);
  turn_taken.store(false);
  const int descriptor = joining.exchange(-1);
  struct stat found {};
  // Another thread may have received the number, between the close and the store that follows it.
  if (descriptor >= 0 && fstat(descriptor, &found) == 0 && found.st_dev == joining_device.load() &&
      found.st_ino == joining_inode.load()) {
    close(descriptor);
  }
}

}  // namespace

// Not a guarded static: a child that is forked during its construction would inherit it locked.
void watch_forks() {
  static bool registered = false;
  if (!registered) {
    registered = pthread_atfork(before_fork, after_fork, in_child) == 0;
  }
}

JoinTurn::JoinTurn() {
  Waiter waiter;
  while (turn_taken.exchange(true)) {
    waiter.pause();
  }
}

JoinTurn::~JoinTurn() {
  turn_taken.store(false);
  wake_waiters();
}

BetweenForks::BetweenForks(std::uint64_t deadline_ns) {
  between.store(true);
  for (Waiter waiter;; waiter.pause()) {
    passed_ = passed.load();
    at_rest_ = under_way.load() == 0;
    if (at_rest_ || now_ns() >= deadline_ns) {
      return;
    }
  }
}

BetweenForks::~BetweenForks() {
  between.store(false);
}

bool BetweenForks::failed() const {
  return !at_rest_ || passed.load() != passed_;
}

void JoinDescriptor::take(Descriptor opened) {
  opened_ = std::move(opened);
  struct stat found {};
  if (opened_ && fstat(opened_.number(), &found) == 0) {
    joining_device.store(found.st_dev);
    joining_inode.store(found.st_ino);
    joining.store(opened_.number());
  }
}

JoinDescriptor::~JoinDescriptor() {
  opened_ = Descriptor();
  joining.store(-1);
}

}  // namespace ration::ledger
