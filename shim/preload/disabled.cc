// RATION_DISABLE=1, read without the core.
// Layer: preload. Threads: any; racing threads store equal values.
#include <fcntl.h>
#include <unistd.h>

#include "link_map.h"
#include "preload.h"

extern "C" char **environ;

namespace ration::preload {
namespace {

constexpr char kDisable[] = "RATION_DISABLE=";

// `environ` is null before libc's own constructor (.preinit_array) and after clearenv(); the kernel still has the
// environment that the process was started with.
bool disabled_at_start() {
  const int file = open("/proc/self/environ", O_RDONLY | O_CLOEXEC);
  if (file < 0) {
    return false;
  }
  constexpr char kWanted[] = "RATION_DISABLE=1";  // with its terminating zero, which every entry has
  char chunk[1024];
  size_t matched = 0;
  bool found = false;
  bool differs = false;
  for (ssize_t got = read(file, chunk, sizeof(chunk)); got > 0 && !found; got = read(file, chunk, sizeof(chunk))) {
    for (ssize_t i = 0; i < got && !found; ++i) {
      differs = differs || chunk[i] != kWanted[matched];
      found = !differs && ++matched == sizeof(kWanted);
      if (chunk[i] == '\0') {
        matched = 0;
        differs = false;
      }
    }
  }
  close(file);
  return found;
}

bool disabled_now() {
  if (environ == nullptr) {
    return disabled_at_start();
  }
  for (char **entry = environ; *entry != nullptr; ++entry) {
    if (starts_with(*entry, kDisable)) {
      return same(*entry + sizeof(kDisable) - 1, "1");
    }
  }
  return false;
}

}  // namespace

// Settings are read in the core; this one must work without it. Read once in a process: a value set later applies to
// its children, and the first NVML call may come long after the first CUDA call.
bool disabled() {
  static int known;  // the process that read it, and the value; racing threads store the same
  const int self = getpid() * 2;
  const int before = __atomic_load_n(&known, __ATOMIC_RELAXED);
  if ((before & ~1) == self) {
    return (before & 1) != 0;
  }
  const bool answer = disabled_now();
  __atomic_store_n(&known, self + (answer ? 1 : 0), __ATOMIC_RELAXED);
  return answer;
}

}  // namespace ration::preload
