#include "ledger/process_end.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "ledger/group_file.h"

namespace ration::ledger {
namespace {

constexpr std::uint64_t kExiting = 0x4;  // the kernel's PF_EXITING

// Linux has at most 2^22 processes; the clock ticks since boot fill the other bits only after a thousand years.
constexpr unsigned kProcessBits = 22;
constexpr std::uint64_t kProcessMask = (std::uint64_t{1} << kProcessBits) - 1;

// proc(5): the fields of /proc/PID/stat from the third on. They follow the name, which may contain any character.
struct Status {
  char state = 0;
  std::uint64_t flags = 0;
  std::int64_t threads = 0;
  std::uint64_t start = 0;

  // False: there is no such process, or it cannot be read.
  bool read_of(const char *process) {
    char path[32];
    std::snprintf(path, sizeof(path), "/proc/%s/stat", process);
    const Descriptor file(open(path, O_RDONLY | O_CLOEXEC));
    char text[1024];
    const ssize_t bytes = file ? read(file.number(), text, sizeof(text) - 1) : -1;
    if (bytes <= 0) {
      return false;
    }
    text[bytes] = 0;
    const char *const behind = std::strrchr(text, ')');
    unsigned long long found_flags = 0, found_start = 0;
    long long found_threads = 0;
    if (behind == nullptr || std::sscanf(behind + 1,
                                         " %c %*d %*d %*d %*d %*d %llu %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %lld "
                                         "%*d %llu",
                                         &state, &found_flags, &found_threads, &found_start) != 4) {
      return false;
    }
    flags = found_flags;
    threads = found_threads;
    start = found_start;
    return true;
  }
};

}  // namespace

ProcessMark this_process_mark() {
  Status own;
  const auto process = static_cast<std::uint64_t>(getpid());
  return own.read_of("self") && process <= kProcessMask ? own.start << kProcessBits | process : 0;
}

std::uint64_t this_pid_namespace() {
  struct stat space {};
  return stat("/proc/self/ns/pid", &space) == 0 ? space.st_ino : 0;
}

ProcessState state_of(ProcessMark mark) {
  char number[16];
  std::snprintf(number, sizeof(number), "%u", static_cast<unsigned>(mark & kProcessMask));
  Status found;
  if (!found.read_of(number) || found.start != mark >> kProcessBits) {
    return ProcessState::gone;
  }
  // A main thread that has ended stays a zombie until the other threads have ended too, and then until the parent
  // waits.
  if ((found.state == 'Z' || found.state == 'X') && found.threads <= 1) {
    return ProcessState::gone;
  }
  return (found.flags & kExiting) != 0 ? ProcessState::ending : ProcessState::lives;
}

}  // namespace ration::ledger
