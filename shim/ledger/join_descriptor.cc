#include "ledger/join_descriptor.h"

#include <pthread.h>
#include <unistd.h>

#include <atomic>

#include "base/clock.h"
#include "base/wait.h"

namespace ration::ledger {
namespace {

constexpr std::uint64_t kMostWaitNs = 50'000'000;

constinit std::atomic<bool> opening{false};  // a thread is opening the file
constinit std::atomic<int> forks_in_progress{0};
constinit std::atomic<std::uint64_t> unwaited_forks{0};  // forks that ever went on without waiting
constinit ReentrantGate::Owner gate_owner{nullptr};
constinit std::atomic<int> joining{-1};  // -1: none
constinit std::atomic<dev_t> joining_device{0};
constinit std::atomic<ino_t> joining_inode{0};

// Both sides store first, then load, so one of the two sees the other.
void before_fork() {
  const std::uint64_t deadline = now_ns() + kMostWaitNs;
  for (Waiter waiter;;) {
    forks_in_progress.fetch_add(1);
    if (!opening.load() || now_ns() > deadline) {
      unwaited_forks.fetch_add(1);
      return;
    }
    forks_in_progress.fetch_sub(1);
    wake_waiters();
    waiter.pause();
  }
}

void after_fork() {
  forks_in_progress.fetch_sub(1);
  wake_waiters();
}

void in_child() {
  forks_in_progress.store(0);
  opening.store(false);
  gate_owner.store(nullptr);
  const int descriptor = joining.exchange(-1);
  FileIdentity found;
  // Another thread may have received the number, between the close and the store that follows it.
  if (descriptor >= 0 && identify(descriptor, found) &&
      found == FileIdentity{joining_device.load(), joining_inode.load()}) {
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

JoinGate::JoinGate() : ReentrantGate(gate_owner) {}

ForkExclusion::ForkExclusion(std::uint64_t deadline_ns) {
  opening.store(true);
  for (Waiter waiter;; waiter.pause()) {
    unwaited_before_ = unwaited_forks.load();
    no_forks_ = forks_in_progress.load() == 0;
    if (no_forks_ || now_ns() >= deadline_ns) {
      return;
    }
  }
}

ForkExclusion::~ForkExclusion() {
  opening.store(false);
  wake_waiters();
}

bool ForkExclusion::failed() const {
  return !no_forks_ || unwaited_forks.load() != unwaited_before_;
}

void JoinDescriptor::take(Descriptor opened) {
  opened_ = std::move(opened);
  FileIdentity found;
  if (opened_ && identify(opened_.number(), found)) {
    joining_device.store(found.device);
    joining_inode.store(found.inode);
    joining.store(opened_.number());
  }
}

JoinDescriptor::~JoinDescriptor() {
  opened_ = Descriptor();
  joining.store(-1);
}

}  // namespace ration::ledger
