/* A preload under which files cannot be locked, as on a file system that has no locks. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>

static int without_locks(const char *name, int file, int command, void *argument) {
  if (command == F_OFD_SETLK || command == F_OFD_GETLK) {
    errno = ENOLCK;
    return -1;
  }
  return ((int (*)(int, int, ...))dlsym(RTLD_NEXT, name))(file, command, argument);
}

int fcntl(int file, int command, ...) {
  va_list arguments;
  va_start(arguments, command);
  void *argument = va_arg(arguments, void *);
  va_end(arguments);
  return without_locks("fcntl", file, command, argument);
}

int fcntl64(int file, int command, ...) {
  va_list arguments;
  va_start(arguments, command);
  void *argument = va_arg(arguments, void *);
  va_end(arguments);
  return without_locks("fcntl64", file, command, argument);
}
