// Loading of code, and limits of kernels: calls that make the driver take memory for itself.
// Layer: hooks. Threads: any.
#include "hooks/boundary.h"
#include "hooks/hooks.h"
#include "policy/calls/overhead.h"

using ration::driver::real;
using ration::hooks::forwarding;
using ration::policy::Overhead;

namespace {

template <class Slot, class... Rest>
CUresult load(const Slot &slot, const char *api, CUmodule *module, Rest... rest) {
  return forwarding<Overhead>(
      slot, [=](Overhead &overhead, const auto &call) { return overhead.load_module(api, module, call); }, module,
      rest...);
}

}  // namespace

extern "C" {

CUresult cuModuleLoad(CUmodule *module, const char *fname) {
  return load(real.cuModuleLoad, "cuModuleLoad", module, fname);
}

CUresult cuModuleLoadData(CUmodule *module, const void *image) {
  return load(real.cuModuleLoadData, "cuModuleLoadData", module, image);
}

CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned int numOptions, CUjit_option *options,
                            void **optionValues) {
  return load(real.cuModuleLoadDataEx, "cuModuleLoadDataEx", module, image, numOptions, options, optionValues);
}

CUresult cuModuleLoadFatBinary(CUmodule *module, const void *fatCubin) {
  return load(real.cuModuleLoadFatBinary, "cuModuleLoadFatBinary", module, fatCubin);
}

CUresult cuModuleUnload(CUmodule hmod) {
  return forwarding<Overhead>(
      real.cuModuleUnload, [=](Overhead &overhead, const auto &call) { return overhead.unload_module(hmod, call); },
      hmod);
}

CUresult cuLibraryGetModule(CUmodule *pMod, CUlibrary library) {
  return forwarding<Overhead>(
      real.cuLibraryGetModule,
      [=](Overhead &overhead, const auto &call) { return overhead.use_library("cuLibraryGetModule", library, call); },
      pMod, library);
}

CUresult cuLibraryGetGlobal(CUdeviceptr *dptr, size_t *bytes, CUlibrary library, const char *name) {
  return forwarding<Overhead>(
      real.cuLibraryGetGlobal,
      [=](Overhead &overhead, const auto &call) { return overhead.use_library("cuLibraryGetGlobal", library, call); },
      dptr, bytes, library, name);
}

CUresult cuLibraryUnload(CUlibrary library) {
  return forwarding<Overhead>(
      real.cuLibraryUnload,
      [=](Overhead &overhead, const auto &call) { return overhead.unload_library(library, call); }, library);
}

CUresult cuKernelGetFunction(CUfunction *pFunc, CUkernel kernel) {
  return forwarding<Overhead>(
      real.cuKernelGetFunction,
      [=](Overhead &overhead, const auto &call) { return overhead.use_kernel("cuKernelGetFunction", kernel, call); },
      pFunc, kernel);
}

CUresult cuCtxSetLimit(CUlimit limit, size_t value) {
  return forwarding<Overhead>(
      real.cuCtxSetLimit, [=](Overhead &overhead, const auto &call) { return overhead.set_limit(limit, value, call); },
      limit, value);
}

}  // extern "C"
