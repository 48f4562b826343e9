// Loads the driver by itself and keeps its functions in exported variables of the same names. Without CUDA's header,
// which declares them as functions.
#include <dlfcn.h>

#include "own_variables.h"

extern "C" {
EXPORTED Init cuInit;
EXPORTED DeviceGet cuDeviceGet;
EXPORTED Retain cuDevicePrimaryCtxRetain;
EXPORTED SetCurrent cuCtxSetCurrent;
EXPORTED Allocate cuMemAlloc_v2;
EXPORTED Free cuMemFree_v2;
// A reference in data, with an addend.
EXPORTED void *own_variables_after_free = reinterpret_cast<char *>(&cuMemFree_v2) + 4;

EXPORTED int own_variables_load() {
  void *driver = dlopen("libcuda.so.1", RTLD_NOW);
  if (driver == nullptr || cuMemFree_v2 != nullptr) return 0;
  cuInit = reinterpret_cast<Init>(dlsym(driver, "cuInit"));
  cuDeviceGet = reinterpret_cast<DeviceGet>(dlsym(driver, "cuDeviceGet"));
  cuDevicePrimaryCtxRetain = reinterpret_cast<Retain>(dlsym(driver, "cuDevicePrimaryCtxRetain"));
  cuCtxSetCurrent = reinterpret_cast<SetCurrent>(dlsym(driver, "cuCtxSetCurrent"));
  cuMemAlloc_v2 = reinterpret_cast<Allocate>(dlsym(driver, "cuMemAlloc_v2"));
  cuMemFree_v2 = reinterpret_cast<Free>(dlsym(driver, "cuMemFree_v2"));
  return own_variables_after_free == reinterpret_cast<char *>(&cuMemFree_v2) + 4 ? 1 : 0;
}

EXPORTED int own_variables_allocate(unsigned long long *address, size_t bytes) {
  return cuMemAlloc_v2(address, bytes);
}
}
