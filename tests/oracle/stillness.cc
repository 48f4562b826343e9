#include "tests/oracle/stillness.h"

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace oracle {
namespace {

// The state letter follows the name, which ends with the last parenthesis.
bool sleeps(long thread) {
  char path[64];
  std::snprintf(path, sizeof path, "/proc/self/task/%ld/stat", thread);
  const int file = ::open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return true;  // it has ended
  char text[512];
  const ssize_t bytes = ::read(file, text, sizeof text - 1);
  ::close(file);
  if (bytes <= 0) return true;
  text[bytes] = 0;
  const char *end = std::strrchr(text, ')');
  return end == nullptr || end[1] == 0 || end[2] == 'S';
}

bool others_sleep_once() {
  DIR *tasks = ::opendir("/proc/self/task");
  if (tasks == nullptr) return false;
  const long own = ::gettid();
  bool all = true;
  while (const dirent *entry = ::readdir(tasks)) {
    const long thread = std::atol(entry->d_name);
    if (thread != 0 && thread != own && !sleeps(thread)) all = false;
  }
  ::closedir(tasks);
  return all;
}

}  // namespace

bool others_sleep() {
  return others_sleep_once() && others_sleep_once();
}

void wait_until_still() {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(1);
  while (!others_sleep() && std::chrono::steady_clock::now() < end) ::sched_yield();
}

}  // namespace oracle
