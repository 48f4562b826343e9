// A library whose constructor sanitises the environment of its program in place, as SANITISE says: programs do so
// before they start their own work. Its variables, and those of the program, are then gone.
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <initializer_list>

namespace {

char *no_entries[] = {nullptr};
bool hidden = false;  // what the kernel tells of the variables of the start

void unset_each() {
  while (environ != nullptr && environ[0] != nullptr) {
    char name[4096] = {};
    memcpy(name, environ[0], strcspn(environ[0], "="));
    unsetenv(name);
  }
}

// What setproctitle does: arguments and variables move, and a title is written where they were.
void set_title(char **arguments, char **entries) {
  char *const begin = arguments[0];
  char *end = begin;
  for (char **list : {arguments, entries}) {
    for (char **each = list; *each != nullptr; ++each) {
      end = *each + strlen(*each) + 1;
      *each = strdup(*each);
    }
  }
  memset(begin, 'x', static_cast<size_t>(end - begin));
  constexpr char kTitle[] = "program: serving RATION_LIMIT=";
  memcpy(begin, kTitle, sizeof(kTitle));
}

__attribute__((constructor)) void sanitise(int, char **arguments, char **entries) {
  const char *asked = getenv("SANITISE");
  const char how = asked == nullptr ? '-' : asked[0];
  switch (how) {
    case 'e':  // environ = empty
      environ = no_entries;
      break;
    case 'n':  // environ = nullptr
      environ = nullptr;
      break;
    case 'c':  // clearenv()
      clearenv();
      break;
    case 'h':  // clearenv() in a process whose /proc entries belong to another user, or without /proc
      hidden = true;
      clearenv();
      break;
    case 'u':  // unsetenv() of each
      unset_each();
      break;
    case 't':  // title
      set_title(arguments, entries);
      break;
    case 'T':  // title, then environ = empty
      set_title(arguments, entries);
      environ = no_entries;
      break;
    default:
      break;
  }
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int open(const char *file, int flags, ...) {
  if (hidden && strcmp(file, "/proc/self/environ") == 0) {
    errno = EACCES;
    return -1;
  }
  __builtin_va_list rest;
  __builtin_va_start(rest, flags);
  const int mode = __builtin_va_arg(rest, int);
  __builtin_va_end(rest);
  return reinterpret_cast<int (*)(const char *, int, int)>(dlsym(RTLD_NEXT, "open"))(file, flags, mode);
}
