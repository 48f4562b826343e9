// Another preload that interposes dlsym, as other tools for GPUs do. It finds the real one by dlvsym(RTLD_NEXT), counts
// what goes through it, and, built with INTERPOSER_WRAPS, puts its own wrapper in place of cuMemAlloc_v2.
#include <dlfcn.h>
#include <string.h>

#include "fill.h"

namespace {

int calls = 0;

using Dlsym = void *(*)(void *, const char *);

Dlsym real_dlsym() {
#if defined(__aarch64__)
  return reinterpret_cast<Dlsym>(dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.17"));
#else
  return reinterpret_cast<Dlsym>(dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5"));
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
  static const Dlsym real = real_dlsym();
#ifdef INTERPOSER_WRAPS
  if (strcmp(name, "cuMemAlloc_v2") == 0) {
    void *found = real(handle, name);
    if (found != nullptr && found != reinterpret_cast<void *>(&wrapped_allocate)) {
      real_allocate = reinterpret_cast<decltype(&::cuMemAlloc_v2)>(found);
    }
    return found != nullptr ? reinterpret_cast<void *>(&wrapped_allocate) : nullptr;
  }
#else
  calls += strncmp(name, "cu", 2) == 0 ? 1 : 0;
#endif
  return real(handle, name);
}

}  // extern "C"
