// Opens files of ours under numbers beyond those of the standard streams, which a program may have closed: what it
// prints to them must not reach our files.
// Layer: base. Threads: any. Only system calls.
#pragma once

#include <sys/types.h>

namespace ration {

// While one lives, descriptors that this thread receives have higher numbers: the numbers of streams that are closed
// are held. Nothing can be read from what holds them, or written to it. Keeps errno.
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

// As openat(2), with O_CLOEXEC. The file has no lower number at any moment.
int open_beyond_streams(int folder, const char *path, int flags, mode_t mode = 0) noexcept;

}  // namespace ration
