#include "base/out_of_reach.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>

namespace ration {

int out_of_reach(int file) noexcept {
  constexpr rlim_t kHighest = 4096;  // bounds the descriptor table, which needs eight bytes for each lower number
  struct rlimit limit {};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) {
    return file;
  }
  const rlim_t most = std::min(limit.rlim_cur, kHighest);
  const int high = fcntl(file, F_DUPFD_CLOEXEC, static_cast<int>(most - most / 64));
  if (high < 0) {
    return file;
  }
  close(file);
  return high;
}

}  // namespace ration
