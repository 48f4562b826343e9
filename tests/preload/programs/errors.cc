// dlerror() around look-ups that a preload answers in place of the loader: nothing after a success, the loader's own
// text after a failure, whatever the driver lacks.
#include <dlfcn.h>
#include <string.h>

#include "checks.h"
#include "fill.h"

int main() {
  preload::Checks checks;
  void *driver = dlopen("libcuda.so.1", RTLD_NOW);
  checks.expect("dlerror() is null after dlopen", dlerror() == nullptr);
  void *allocate = dlsym(driver, "cuMemAlloc_v2");
  checks.expect("cuMemAlloc_v2 is found", allocate != nullptr);
  checks.expect("dlerror() is null after dlsym", dlerror() == nullptr);
  checks.expect("the same address twice", dlsym(driver, "cuMemAlloc_v2") == allocate);
  checks.expect("dlerror() is null after the second dlsym", dlerror() == nullptr);
  checks.expect("an unknown name is not found", dlsym(driver, "cuNoSuchFunction") == nullptr);
  const char *error = dlerror();
  checks.expect("dlerror() names the driver and the name",
                error != nullptr && strstr(error, "libcuda.so.1") != nullptr &&
                    strstr(error, "undefined symbol: cuNoSuchFunction") != nullptr);
  checks.expect("dlerror() tells once", dlerror() == nullptr);
  checks.expect("a loader function is not the driver's",
                dlsym(driver, "dlsym") != nullptr);  // found in a dependency of the driver: libc
  dlerror();
  const preload::Calls calls = preload::calls_found_by([=](const char *name) { return dlsym(driver, name); });
  dlerror();  // cuCtxCreate_v2 may be missing
  checks.expect("the driver starts", preload::start(calls));
  CUdeviceptr address = 0;
  checks.expect("a block is had", calls.allocate(&address, 1 << 20) == CUDA_SUCCESS);
  checks.expect("dlerror() is null after the first driver call", dlerror() == nullptr);
  return checks.done();
}
