// Keeps forks out of the loading of the core: a child would inherit the loader half-way, and run into code that is not
// relocated yet.
// Layer: preload. Threads: any. A fork waits for a loading thread, and a loading thread for forks, 50 ms at most:
// either may hold a lock that the other one needs, as a fork in a library's constructor does.
#include "fork_gate.h"

#include <pthread.h>
#include <time.h>

#include "base/clock.h"
#include "preload.h"

// Of every shared object (Itanium C++ ABI, 3.3.5.3), by the compiler's start files, which this library does without.
extern "C" {
__attribute__((visibility("hidden"))) void *dso_handle __asm__("__dso_handle") = nullptr;
}

namespace ration::preload {
namespace {

constexpr uint64_t kLongestNs = 50'000'000;

int loading;     // threads that load the core
int forking;     // threads that fork
int registered;  // with the C library; twice is harmless
__attribute__((tls_model("initial-exec"))) __thread int loads_itself;

bool is_zero(const int &count) {
  return __atomic_load_n(&count, __ATOMIC_SEQ_CST) == 0;
}

void add(int &count, int change) {
  __atomic_fetch_add(&count, change, __ATOMIC_SEQ_CST);
}

// False: it is later than that.
bool pause_until(uint64_t deadline_ns) {
  constexpr timespec kShort = {0, 50'000};
  nanosleep(&kShort, nullptr);
  return now_ns() < deadline_ns;
}

// Both sides store first, then load, so one of the two sees the other. The fork is the one that steps back.
void before_fork() {
  const uint64_t deadline_ns = now_ns() + kLongestNs;
  add(forking, 1);
  while (loads_itself == 0 && !is_zero(loading)) {
    add(forking, -1);
    const bool in_time = pause_until(deadline_ns);
    add(forking, 1);
    if (!in_time) {
      return;
    }
  }
}

void after_fork() {
  add(forking, -1);
}

// The other threads are gone, whatever they did.
void in_child() {
  __atomic_store_n(&forking, 0, __ATOMIC_SEQ_CST);
  __atomic_store_n(&loading, loads_itself, __ATOMIC_SEQ_CST);
}

}  // namespace

void keep_forks_out() {
  if (is_zero(registered) && pthread_atfork(before_fork, after_fork, in_child) == 0) {
    __atomic_store_n(&registered, 1, __ATOMIC_SEQ_CST);
  }
  add(loading, 1);
  ++loads_itself;
  const uint64_t deadline_ns = now_ns() + kLongestNs;
  while (!is_zero(forking) && pause_until(deadline_ns)) {
  }
}

void let_forks_in() {
  --loads_itself;
  add(loading, -1);
}

}  // namespace ration::preload
