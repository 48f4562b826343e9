// A runtime-API program that logs on stdout how its runtime reaches the driver: every dlopen, every dlsym and every
// look-up, with the pointer that it used. The simulator's trace shows the calls that follow.
// Usage: observed_program query | allocate. Called from: sequence_test.
#include <cuda_runtime.h>
#include <dlfcn.h>

#include <cstdio>
#include <cstring>

#include "driver.h"

namespace {

using GetProcAddress = decltype(&::cuGetProcAddress_v2);
using Dlsym = void *(*)(void *, const char *);

GetProcAddress real_get = nullptr;

Dlsym real_dlsym() {
  // This program replaces dlsym, so it takes libc's by version: 2.34 is where it moved into libc.
  static const auto found = reinterpret_cast<Dlsym>(dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.34"));
  return found;
}

void note(const char *through, const char *name, int version, cuuint64_t flags, const void *status) {
  std::printf("look-up through %s: \"%s\" %d %llu%s\n", through, name, version, static_cast<unsigned long long>(flags),
              status == nullptr ? "" : " status");
}

CUresult get_of_version_12000(const char *name, void **function, int version, cuuint64_t flags,
                              CUdriverProcAddressQueryResult *status) {
  note("cuGetProcAddress", name, version, flags, status);
  return real_get(name, function, version, flags, status);
}

CUresult get_of_dlsym(const char *name, void **function, int version, cuuint64_t flags,
                      CUdriverProcAddressQueryResult *status) {
  note("dlsym", name, version, flags, status);
  const CUresult result = real_get(name, function, version, flags, status);
  if (result == CUDA_SUCCESS && std::strcmp(name, "cuGetProcAddress") == 0 && version == 12000) {
    *function = reinterpret_cast<void *>(get_of_version_12000);
  }
  return result;
}

}  // namespace

// NOLINTBEGIN(readability-inconsistent-declaration-parameter-name)
extern "C" __attribute__((visibility("default"))) void *dlsym(void *library, const char *name) noexcept {
  void *found = real_dlsym()(library, name);
  if (std::strncmp(name, "cu", 2) != 0) return found;
  std::printf("dlsym %s\n", name);
  if (found != nullptr && std::strcmp(name, "cuGetProcAddress_v2") == 0) {
    real_get = reinterpret_cast<GetProcAddress>(found);
    return reinterpret_cast<void *>(get_of_dlsym);
  }
  return found;
}

extern "C" __attribute__((visibility("default"))) void *dlopen(const char *file, int mode) {
  static const auto real = reinterpret_cast<void *(*)(const char *, int)>(real_dlsym()(RTLD_NEXT, "dlopen"));
  if (file != nullptr && std::strstr(file, "libcuda") != nullptr) std::printf("dlopen %s %d\n", file, mode);
  return real(file, mode);
}
// NOLINTEND(readability-inconsistent-declaration-parameter-name)

namespace {

int query() {
  int count = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess) return 1;
  cudaDeviceProp properties = {};
  for (int i = 0; i < count; ++i) {
    if (cudaGetDeviceProperties(&properties, i) != cudaSuccess) return 1;
  }
  return 0;
}

// Does not free its allocation before exit, as many programs do not.
int allocate() {
  void *block = nullptr;
  const cudaError_t allocated = cudaMalloc(&block, 1 << 20);
  std::printf("cudaMalloc %d\n", static_cast<int>(allocated));
  cudaStream_t stream = nullptr;
  std::printf("cudaStreamCreate %d\n", static_cast<int>(cudaStreamCreate(&stream)));
  return allocated == cudaSuccess ? 0 : 1;
}

}  // namespace

int main(int argc, char **argv) {
  const char *mode = argc > 1 ? argv[1] : "";
  if (std::strcmp(mode, "query") == 0) return query();
  if (std::strcmp(mode, "allocate") == 0) return allocate();
  return 2;
}
