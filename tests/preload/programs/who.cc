// Two definitions of who(): libwho_b asks RTLD_NEXT for the next one and expects libwho_c's. A dlsym that does not keep
// its caller's identity answers libwho_b's own again. Built as B (unoptimised and optimised) and as C.
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <string.h>

static char answer[16];
static int depth = 0;

extern "C" __attribute__((visibility("default"))) const char *who() {
#ifdef WHO_ASKS
  const auto next = ++depth > 3 ? nullptr : reinterpret_cast<const char *(*)()>(dlsym(RTLD_NEXT, "who"));
  strcpy(answer, "B");
  strncat(answer, next != nullptr ? next() : "?", 8);
#else
  depth = 0;
  strcpy(answer, "C");
#endif
  return answer;
}
