// Linked with -lcuda and loaded with RTLD_DEEPBIND: its own references would pass by every preload. fill_next is for a
// program that is linked with this library as well: what comes next after it is the driver, past every preload.
#include <dlfcn.h>

#include "fill.h"

extern "C" {

__attribute__((visibility("default"))) int fill_direct() {
  return preload::fill({&cuInit, &cuDeviceGet, &cuCtxCreate_v2, &cuMemAlloc_v2});
}

__attribute__((visibility("default"))) int fill_dlsym() {
  void *driver = dlopen("libcuda.so.1", RTLD_NOW);
  return preload::fill(preload::calls_found_by([=](const char *name) { return dlsym(driver, name); }));
}

__attribute__((visibility("default"))) int fill_next() {
  return preload::fill(preload::calls_found_by([](const char *name) { return dlsym(RTLD_NEXT, name); }));
}

__attribute__((visibility("default"))) int fill_default() {
  return preload::fill(preload::calls_found_by([](const char *name) { return dlsym(RTLD_DEFAULT, name); }));
}

}  // extern "C"
