// Opens Ration's files under numbers above those of the standard streams. A program may have closed the streams, and
// text that it still prints to them must not reach Ration's files.
// Layer: base. Threads: any. Only system calls.
#pragma once

#include <sys/types.h>

namespace ration {

// While such an object lives, descriptors that this thread opens get higher numbers, because it occupies the numbers of
// closed standard streams. The placeholder descriptors can be neither read nor written. Keeps errno.
class HeldStreams {
 public:
  HeldStreams();
  ~HeldStreams();
  HeldStreams(const HeldStreams &) = delete;
  HeldStreams &operator=(const HeldStreams &) = delete;

 private:
  static constexpr int kStreams = 3;
  void hold();

  int numbers_[kStreams];
  int count_ = 0;
};

// Like openat(2) with O_CLOEXEC, but the number of the result is never that of a standard stream.
int open_beyond_streams(int folder, const char *path, int flags, mode_t mode = 0) noexcept;

}  // namespace ration
