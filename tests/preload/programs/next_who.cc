// Prints the chain of who() from this program through its libraries (who.cc), each step an RTLD_NEXT.
#include <dlfcn.h>
#include <stdio.h>

extern "C" const char *who();

int main() {
  const auto next = reinterpret_cast<const char *(*)()>(dlsym(RTLD_NEXT, "who"));
  dprintf(1, "linked %s next %s\n", who(), next != nullptr ? next() : "?");
  return 0;
}
