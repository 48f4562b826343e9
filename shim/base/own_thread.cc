#include "base/own_thread.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>

#include "base/clock.h"
#include "base/thread_number.h"
#include "base/wait.h"

namespace ration {
namespace {

constexpr std::size_t kStackBytes = std::size_t{512} << 10U;

constexpr std::uint64_t kStartNs = 100'000'000;

constinit std::atomic<unsigned> started{0};
constinit std::atomic<pthread_t> main_thread{};

// `stack_bytes`: 0 means as many as the program's threads have.
bool make_detached(void *(*run)(void *), void *argument, std::size_t stack_bytes) noexcept {
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes) != 0) {
    return false;
  }
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  if (stack_bytes != 0) {
    pthread_attr_setstacksize(&attributes, stack_bytes);
  }
  pthread_t thread{};
  const bool made = pthread_create(&thread, &attributes, run, argument) == 0;
  pthread_attr_destroy(&attributes);
  return made;
}

}  // namespace

// Tries again with the default stack size, because the program's thread_local variables may need a larger stack.
bool start_own_thread(void *(*run)(void *), void *argument) noexcept {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  if (pthread_sigmask(SIG_SETMASK, &all, &before) != 0) {
    return false;
  }
  if (thread_number() == getpid()) {
    main_thread.store(pthread_self());
  }
  const unsigned earlier = started.load();
  const bool made = make_detached(run, argument, kStackBytes) || make_detached(run, argument, 0);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  const std::uint64_t deadline = now_ns() + kStartNs;
  for (Waiter waiter; made && started.load() == earlier && now_ns() < deadline; waiter.pause()) {
  }
  return made;
}

OwnThread::OwnThread(const char *name) noexcept {
  pthread_setname_np(pthread_self(), name);
  started.fetch_add(1);
  wake_waiters();
}

// libc knows that a thread has ended: it then has no CPU clock. If the main thread's handle is not known, checks
// whether the process still has its program file. This opens no descriptor, which could get a number that the program
// has just freed for a file of its own.
bool OwnThread::is_main_thread_gone() noexcept {
  const pthread_t known = main_thread.load();
  clockid_t clock = 0;
  char first = 0;
  return known != pthread_t{} ? pthread_getcpuclockid(known, &clock) == ESRCH
                              : readlink("/proc/self/exe", &first, 1) < 0;
}

}  // namespace ration
