// Another preload that interposes dlsym, as other GPU tools do. It finds the real one by dlvsym(RTLD_NEXT), or by
// libc's handle if built with INTERPOSER_ASKS_LIBC. It counts the calls and, built with INTERPOSER_WRAPS, replaces
// cuMemAlloc_v2 by its own wrapper.
#include <dlfcn.h>

#include "fill.h"

namespace {

int calls = 0;

// A sanitizer looks its functions up before it can intercept one, so no libc function is called here.
bool starts_with(const char *text, const char *prefix) {
  while (*prefix != '\0' && *text == *prefix) {
    ++text;
    ++prefix;
  }
  return *prefix == '\0';
}

using Dlsym = void *(*)(void *, const char *);

Dlsym real_dlsym() {
#ifdef INTERPOSER_ASKS_LIBC
  void *const where = dlopen("libc.so.6", RTLD_LAZY);
#else
  void *const where = RTLD_NEXT;
#endif
#if defined(__aarch64__)
  return reinterpret_cast<Dlsym>(dlvsym(where, "dlsym", "GLIBC_2.17"));
#else
  return reinterpret_cast<Dlsym>(dlvsym(where, "dlsym", "GLIBC_2.2.5"));
#endif
}

#ifdef INTERPOSER_WRAPS
decltype(&::cuMemAlloc_v2) real_allocate = nullptr;

CUresult wrapped_allocate(CUdeviceptr *address, size_t bytes) {
  ++calls;
  return real_allocate(address, bytes);
}
#endif

}  // namespace

extern "C" {

__attribute__((visibility("default"))) int interposed_calls() {
  return calls;
}

__attribute__((visibility("default"))) void *dlsym(void *handle, const char *name) noexcept {
  static Dlsym real;  // no guarded initialisation: its guard is a libc function as well
  if (real == nullptr) {
    real = real_dlsym();
  }
#ifdef INTERPOSER_WRAPS
  if (starts_with(name, "cuMemAlloc_v2")) {
    void *found = real(handle, name);
    if (found != nullptr && found != reinterpret_cast<void *>(&wrapped_allocate)) {
      real_allocate = reinterpret_cast<decltype(&::cuMemAlloc_v2)>(found);
    }
    return found != nullptr ? reinterpret_cast<void *>(&wrapped_allocate) : nullptr;
  }
#else
  calls += starts_with(name, "cu") ? 1 : 0;
#endif
  return real(handle, name);
}

}  // extern "C"
