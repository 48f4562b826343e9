// Cost of dlsym: of a hooked driver function, of another driver function, and of names outside CUDA:
// foreign_name and foreign_name_found begin as the driver's do, and no driver is loaded.
#include <dlfcn.h>

#include <cstdio>
#include <cstring>

#include "paired.h"

using namespace ration::bench;

extern "C" __attribute__((visibility("default"))) void curl_of_the_program() {}

namespace {

// Keeps the optimiser from removing the measured call.
void *volatile sink;

double look_up(void *handle, const char *name) {
  constexpr int kCalls = 20000;
  return least_ns(kCalls, [handle, name] {
    for (int i = 0; i < kCalls; ++i) sink = dlsym(handle, name);
  });
}

int child() {
  std::printf("foreign_name %f\n", look_up(RTLD_DEFAULT, "curl_easy_init"));
  if (dlsym(RTLD_DEFAULT, "curl_of_the_program") == nullptr) return 1;
  std::printf("foreign_name_found %f\n", look_up(RTLD_DEFAULT, "curl_of_the_program"));
  void *driver = dlopen("libcuda.so.1", RTLD_NOW);
  if (driver == nullptr || dlsym(driver, "cuMemAlloc_v2") == nullptr) return 1;
  std::printf("hooked_name %f\n", look_up(driver, "cuMemAlloc_v2"));
  std::printf("other_driver_name %f\n", look_up(driver, "cuInit"));
  std::printf("other_name_default %f\n", look_up(RTLD_DEFAULT, "strlen"));
  std::printf("other_name_next %f\n", look_up(RTLD_NEXT, "strlen"));
  return 0;
}

}  // namespace

int main(int count, char **arguments) {
  if (count == 2 && std::strcmp(arguments[1], "--child") == 0) return child();
  return compare_children("dlsym", count, arguments);
}
