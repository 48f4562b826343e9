// Opens files of ours under numbers beyond those of the standard streams, which a program may have closed: what it
// prints to them must not reach our files.
// Layer: base. Threads: any. Only system calls.
#pragma once

#include <sys/types.h>

namespace ration {

// As openat(2), with O_CLOEXEC. The file has no lower number at any moment.
int open_beyond_streams(int folder, const char *path, int flags, mode_t mode = 0) noexcept;

}  // namespace ration
