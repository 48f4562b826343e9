// A file system without nameless files (open(2), O_TMPFILE), such as NFS: a preload that refuses them as that does.
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>

extern "C" __attribute__((visibility("default"))) int open(const char *path, int flags, ...) {
  if ((flags & O_TMPFILE) == O_TMPFILE) {
    errno = EOPNOTSUPP;
    return -1;
  }
  va_list more;
  va_start(more, flags);
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(more, mode_t) : 0;
  va_end(more);
  return static_cast<int>(syscall(SYS_openat, AT_FDCWD, path, flags, mode));
}
