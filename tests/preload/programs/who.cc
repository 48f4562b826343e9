// Two definitions of who(): libwho_b looks up the next one with RTLD_NEXT and expects libwho_c's. A dlsym that loses
// its caller's identity returns libwho_b's own. Built as B (unoptimised and optimised) and as C.
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
