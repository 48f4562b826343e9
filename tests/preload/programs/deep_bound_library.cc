// Linked with -lcuda and loaded with RTLD_DEEPBIND, which binds its own references past every preload. fill_next serves
// a program that also links with this library: the next definition after it is the driver's, past every preload.
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
