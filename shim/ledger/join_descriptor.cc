#include "ledger/join_descriptor.h"

#include <pthread.h>
#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>

#include "ledger/totals.h"

namespace ration::ledger {
namespace {

constinit std::atomic<std::uint64_t> begun{0};
constinit std::atomic<std::uint64_t> ended{0};
constinit std::atomic<int> joining{-1};  // -1: none
constinit std::atomic<dev_t> joining_device{0};
constinit std::atomic<ino_t> joining_inode{0};

void before_fork() {
  begun.fetch_add(1);
}

void after_fork() {
  ended.fetch_add(1);
}

void in_child() {
  ended.store(begun.load());
  const int descriptor = joining.exchange(-1);
  struct stat found {};
  // Another thread may have been given the number, between the close and the store behind it.
  if (descriptor >= 0 && fstat(descriptor, &found) == 0 && found.st_dev == joining_device.load() &&
      found.st_ino == joining_inode.load()) {
    close(descriptor);
  }
}

}  // namespace

// No guarded static, which a child forked in the middle would inherit locked.
void watch_forks() {
  static bool registered = false;
  if (!registered) {
    registered = pthread_atfork(before_fork, after_fork, in_child) == 0;
  }
}

std::uint64_t forks_at_rest(std::uint64_t deadline_ns) {
  for (;;) {
    const std::uint64_t over = ended.load();
    const std::uint64_t all = begun.load();
    if (over == all || monotonic_ns() > deadline_ns) {
      return all;
    }
    sched_yield();
  }
}

std::uint64_t forks_begun() {
  return begun.load();
}

JoinDescriptor::JoinDescriptor(Descriptor opened) : opened_(std::move(opened)) {
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
