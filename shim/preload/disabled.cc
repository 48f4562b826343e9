// Reads RATION_DISABLE=1 without the core, and finds out whether another copy of this library is at work.
// Layer: preload. Threads: any; racing threads store equal values.
#include <fcntl.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "link_map.h"
#include "preload.h"

extern "C" char **environ;

namespace ration::preload {
namespace {

constexpr char kDisable[] = "RATION_DISABLE=";

// The kernel keeps the environment with which the process was started (config/start_environment.h). The first entry
// with the name counts, as for getenv.
bool disabled_at_start() {
  const int file = getauxval(AT_SECURE) == 0 ? open("/proc/self/environ", O_RDONLY | O_CLOEXEC) : -1;
  if (file < 0) {
    return false;
  }
  constexpr char kWanted[] = "RATION_DISABLE=1";  // including the terminating zero that every entry has
  constexpr size_t kName = sizeof(kDisable) - 1;
  constexpr size_t kMostBytes = size_t{8} << 20;  // execve takes 6 MiB at most
  char chunk[1024];
  size_t total = 0;
  size_t matched = 0;  // matching characters at the start of this entry
  bool differs = false;
  bool decided = false;
  bool disabled = false;
  for (ssize_t got = read(file, chunk, sizeof(chunk)); got > 0 && !decided && total < kMostBytes;
       got = read(file, chunk, sizeof(chunk))) {
    total += static_cast<size_t>(got);
    for (ssize_t i = 0; i < got && !decided; ++i) {
      differs = differs || chunk[i] != kWanted[matched];
      matched += differs ? 0 : 1;
      disabled = !differs && matched == sizeof(kWanted);
      decided = disabled || (differs && matched >= kName);
      if (chunk[i] == '\0') {
        matched = 0;
        differs = false;
      }
    }
  }
  close(file);
  return disabled;
}

// If the variable is merely absent now, its value at the start counts: some programs empty their environment before
// they use CUDA.
bool disabled_now() {
  for (char **entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    if (starts_with(*entry, kDisable)) {
      return same(*entry + sizeof(kDisable) - 1, "1");
    }
  }
  return disabled_at_start();
}

// True if the administrator forbids disabling, on machines where every program preloads the library
// (/etc/ld.so.preload).
bool is_enforced() {
  return access(RATION_SYSTEM_FOLDER "/enforced", F_OK) == 0;
}

}  // namespace

// The core reads all settings but this one, which must work without it. It is read once in each process: a value set
// later applies to the process's children, and the first NVML call may come long after the first CUDA call.
// Design: design/interception.md#ration_disable
bool disabled() {
  static int known;  // the process that read it, and the value; racing threads store equal values
  const int self = getpid() * 2;
  const int before = __atomic_load_n(&known, __ATOMIC_RELAXED);
  if ((before & ~1) == self) {
    return (before & 1) != 0;
  }
  const bool answer = (disabled_now() && !is_enforced()) || follows_another();
  __atomic_store_n(&known, self + (answer ? 1 : 0), __ATOMIC_RELAXED);
  return answer;
}

}  // namespace ration::preload
