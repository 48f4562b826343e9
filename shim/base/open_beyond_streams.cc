#include "base/open_beyond_streams.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace ration {
HeldStreams::HeldStreams() {
  for (int stream = 0; stream < kStreams; ++stream) {
    if (fcntl(stream, F_GETFD) < 0 && errno == EBADF) {
      hold();
    }
  }
}

HeldStreams::~HeldStreams() {
  const int error = errno;
  while (count_ > 0) {
    close(numbers_[--count_]);
  }
  errno = error;
}

void HeldStreams::hold() {
  const int held = open("/", O_PATH | O_CLOEXEC);
  if (held >= kStreams) {  // another thread opened the stream meanwhile
    close(held);
  } else if (held >= 0) {
    numbers_[count_++] = held;
  }
}

int open_beyond_streams(int folder, const char *path, int flags, mode_t mode) noexcept {
  const HeldStreams held;
  const int file = openat(folder, path, flags | O_CLOEXEC, mode);
  if (file < 0 || file > STDERR_FILENO) {
    return file;
  }
  const int beyond = fcntl(file, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);  // another thread closed a stream meanwhile
  const int error = errno;
  close(file);
  errno = error;
  return beyond;
}

}  // namespace ration
