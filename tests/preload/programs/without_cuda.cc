// A program that checks for CUDA and goes on without: no driver is loaded, and a preload must not look like one. It is
// given no driver to load either, so that even a call of a weak reference cannot reach one.
#include <dlfcn.h>
#include <nvml.h>
#include <string.h>

#include <initializer_list>

#include "checks.h"
#include "fill.h"

extern "C" {
__attribute__((weak)) CUresult cuInit(unsigned int);
__attribute__((weak)) CUresult cuMemAlloc_v2(CUdeviceptr *, size_t);
__attribute__((weak)) nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t, nvmlMemory_t *);
}

namespace {

preload::Checks checks;

template <class LookUp>
void expect_absent(const char *how, const char *name, LookUp look_up) {
  char what[256];
  dlerror();
  const bool absent = look_up() == nullptr;
  const char *error = dlerror();
  snprintf(what, sizeof(what), "%s: %s is not there", how, name);
  checks.expect(what, absent);
  snprintf(what, sizeof(what), "%s: dlerror() says that %s is undefined, not: %s", how, name,
           error != nullptr ? error : "nothing");
  checks.expect(what,
                error != nullptr && strstr(error, "undefined symbol: ") != nullptr && strstr(error, name) != nullptr);
}

}  // namespace

int main() {
  void *program = dlopen(nullptr, RTLD_NOW);
  for (const char *name : {"cuInit", "cuMemAlloc_v2", "cuGetProcAddress_v2", "cuNoSuchFunction",
                           "nvmlDeviceGetMemoryInfo", "nvmlDeviceGetMemoryInfo_v2", "nvmlNoSuchFunction"}) {
    expect_absent("RTLD_DEFAULT", name, [=] { return dlsym(RTLD_DEFAULT, name); });
    expect_absent("RTLD_NEXT", name, [=] { return dlsym(RTLD_NEXT, name); });
    expect_absent("the program's handle", name, [=] { return dlsym(program, name); });
    expect_absent("RTLD_DEFAULT with a version", name, [=] { return dlvsym(RTLD_DEFAULT, name, "RATION_1"); });
  }
  checks.expect("a weak cuInit is null", &cuInit == nullptr);
  checks.expect("other names are found", dlsym(RTLD_DEFAULT, "strlen") != nullptr);
  checks.expect("dlerror() is null after a success", dlerror() == nullptr);
  checks.expect("the core is not mapped", !preload::is_mapped("libration-core.so"));
  checks.expect("no driver is mapped", !preload::is_mapped("libcuda.so"));
  // A preload that exports a function makes a weak reference to it true; a call of it must then return, not crash.
  CUdeviceptr address = preload::kBefore;
  if (&cuMemAlloc_v2 != nullptr) {
    checks.expect("without a driver, nothing is allocated", cuMemAlloc_v2(&address, 1 << 20) == CUDA_ERROR_NOT_FOUND);
  }
  checks.expect("the out-parameter is untouched", address == preload::kBefore);
  nvmlMemory_t memory = {1, 1, 1};
  if (&nvmlDeviceGetMemoryInfo != nullptr) {
    checks.expect("without NVML, there is no answer",
                  nvmlDeviceGetMemoryInfo(nullptr, &memory) == NVML_ERROR_FUNCTION_NOT_FOUND);
  }
  checks.expect("the question is untouched", memory.total == 1 && memory.free == 1 && memory.used == 1);
  return checks.done();
}
