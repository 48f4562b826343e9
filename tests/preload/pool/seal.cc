#include "seal.h"

#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>

#include "system_calls.h"

namespace preload::pool {
namespace {

struct Mapping {
  uintptr_t from;
  uintptr_t to;
  int protection;
};
constexpr int kMostMappings = 16;
Mapping mappings[kMostMappings];
int mapping_count = 0;

std::atomic<int> openers{0};
std::atomic<unsigned long long> openings{0};
// Of the thread: its call, and whether it has the mappings open.
thread_local bool in_call = false;
thread_local volatile sig_atomic_t has_open = 0;

void give_access(bool all) {
  for (int i = 0; i < mapping_count; ++i) {
    syscall(SYS_mprotect, mappings[i].from, mappings[i].to - mappings[i].from, all ? mappings[i].protection : PROT_NONE,
            kNotTheCallers);
  }
}

bool covers(uintptr_t address) {
  for (int i = 0; i < mapping_count; ++i) {
    if (mappings[i].from <= address && address < mappings[i].to) return true;
  }
  return false;
}

void open_for_this_thread() {
  if (has_open == 0) {
    has_open = 1;
    openers.fetch_add(1);
  }
  openings.fetch_add(1);
  give_access(true);
}

// Repeatedly, if other threads whose calls are over seal what this one needs.
void on_fault(int, siginfo_t *info, void *) {
  if (!in_call || !covers(reinterpret_cast<uintptr_t>(info->si_addr))) {
    signal(SIGSEGV, SIG_DFL);
    return;
  }
  open_for_this_thread();
}

using SystemCall = long(long, ...);

SystemCall *next_syscall() {
  static const auto next = reinterpret_cast<SystemCall *>(dlsym(RTLD_NEXT, "syscall"));
  return next;
}

}  // namespace
}  // namespace preload::pool

// Before the ledger touches a mapping it asks the kernel whether the pages are there (base/readable.h). To ask is to
// touch; the answer is the kernel's about pages that are, without its time, in which all would be open.
extern "C" __attribute__((visibility("default"))) long syscall(long number, ...) noexcept {
  using namespace preload::pool;
  va_list list;
  va_start(list, number);
  long given[6];
  for (long &each : given) each = va_arg(list, long);
  va_end(list);
  if (number == SYS_rt_sigprocmask && in_call && covers(static_cast<uintptr_t>(given[1]))) {
    open_for_this_thread();
    errno = EINVAL;
    return -1;
  }
  return next_syscall()(number, given[0], given[1], given[2], given[3], given[4], given[5]);
}

namespace preload::pool {

int find_mappings(const char *folder) {
  (void)next_syscall();  // a handler must not look it up
  FILE *maps = fopen("/proc/self/maps", "re");
  char line[4352];
  while (maps != nullptr && mapping_count < kMostMappings && fgets(line, sizeof(line), maps) != nullptr) {
    unsigned long from = 0;
    unsigned long to = 0;
    char access[5] = "";
    int path = 0;
    if (sscanf(line, "%lx-%lx %4s %*s %*s %*s %n", &from, &to, access, &path) == 3 && path > 0 &&
        strncmp(line + path, folder, strlen(folder)) == 0) {
      mappings[mapping_count++] = {from, to, (access[0] == 'r' ? PROT_READ : 0) | (access[1] == 'w' ? PROT_WRITE : 0)};
    }
  }
  if (maps != nullptr) fclose(maps);
  struct sigaction action {};
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGSEGV, &action, nullptr);
  return mapping_count;
}

void seal() {
  give_access(false);
}
void unseal() {
  give_access(true);
}
void touch_sealed() {
  *reinterpret_cast<const volatile char *>(mappings[0].from);
}

SealedCall::SealedCall() : openings_(openings.load()), alone_(openers.load() == 0) {
  has_open = 0;
  in_call = true;
}

void SealedCall::end() {
  in_call = false;
  faulted_ = has_open != 0;
  alone_ = alone_ && (faulted_ || openings.load() == openings_);
  if (!faulted_) return;
  give_access(false);  // first: a thread that finds no opener finds it sealed
  openers.fetch_sub(1);
}

}  // namespace preload::pool
