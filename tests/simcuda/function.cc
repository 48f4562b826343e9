// Functions and kernels: attributes, names, parameters. A CUkernel is accepted in place of a CUfunction, as by the real
// driver. Layer: code.h. Threads: any.
#include "implemented.h"
#include "tests/simcuda/code.h"

namespace simcuda {
namespace {

template <class Handle, class Value, class Read>
CUresult report(Handle handle, Value *value, Read read) {
  const Lock lock(driver().mutex);
  const Function *function = find_function(handle);
  if (function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *value = read(*function);
  return CUDA_SUCCESS;
}

template <class Handle>
CUresult get_attribute(int *pi, CUfunction_attribute attrib, Handle handle) {
  if (attrib < 0 || attrib >= CU_FUNC_ATTRIBUTE_MAX) return CUDA_ERROR_INVALID_VALUE;
  return report(handle, pi, [attrib](const Function &function) { return function.attributes[attrib]; });
}

template <class Handle>
CUresult set_attribute(Handle handle, CUfunction_attribute attrib, int value) {
  const bool settable = attrib >= CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES && attrib < CU_FUNC_ATTRIBUTE_MAX;
  const Lock lock(driver().mutex);
  Function *function = find_function(handle);
  if (function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (!settable) return CUDA_ERROR_INVALID_VALUE;
  function->attributes[attrib] = value;
  return CUDA_SUCCESS;
}

CUresult accept(CUfunction hfunc) {
  const Lock lock(driver().mutex);
  return find_function(hfunc) == nullptr ? CUDA_ERROR_INVALID_HANDLE : CUDA_SUCCESS;
}

}  // namespace

CUresult cuFuncGetAttribute(int *pi, CUfunction_attribute attrib, CUfunction hfunc) {
  return get_attribute(pi, attrib, hfunc);
}
CUresult cuFuncSetAttribute(CUfunction hfunc, CUfunction_attribute attrib, int value) {
  return set_attribute(hfunc, attrib, value);
}
CUresult cuKernelGetAttribute(int *pi, CUfunction_attribute attrib, CUkernel kernel, CUdevice) {
  return get_attribute(pi, attrib, kernel);
}
CUresult cuKernelSetAttribute(CUfunction_attribute attrib, int val, CUkernel kernel, CUdevice) {
  return set_attribute(kernel, attrib, val);
}
CUresult cuKernelGetFunction(CUfunction *pFunc, CUkernel kernel) {
  Lock lock(driver().mutex);
  Context *context = nullptr;
  if (const CUresult error = current(lock, &context); error != CUDA_SUCCESS) return error;
  const Function *function = find_function(kernel);
  if (function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (pFunc == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult error = make_globals(*function->image, *context->root); error != CUDA_SUCCESS) return error;
  *pFunc = reinterpret_cast<CUfunction>(kernel);
  return CUDA_SUCCESS;
}
CUresult cuKernelGetLibrary(CUlibrary *pLib, CUkernel kernel) {
  return report(kernel, pLib, [](const Function &function) { return reinterpret_cast<CUlibrary>(function.image); });
}
CUresult cuFuncGetName(const char **name, CUfunction hfunc) {
  return report(hfunc, name, [](const Function &function) { return function.kernel->name.c_str(); });
}
CUresult cuKernelGetName(const char **name, CUkernel hfunc) {
  return report(hfunc, name, [](const Function &function) { return function.kernel->name.c_str(); });
}
CUresult cuFuncGetModule(CUmodule *hmod, CUfunction hfunc) {
  return report(hfunc, hmod, [](const Function &function) { return reinterpret_cast<CUmodule>(function.image); });
}

CUresult cuFuncGetParamInfo(CUfunction func, size_t paramIndex, size_t *paramOffset, size_t *paramSize) {
  const Lock lock(driver().mutex);
  const Function *function = find_function(func);
  if (function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  const auto &sizes = function->kernel->param_bytes;
  if (paramOffset == nullptr || paramIndex >= sizes.size()) return CUDA_ERROR_INVALID_VALUE;
  *paramOffset = offsets_of(sizes)[paramIndex];
  if (paramSize != nullptr) *paramSize = sizes[paramIndex];
  return CUDA_SUCCESS;
}

CUresult cuFuncSetCacheConfig(CUfunction hfunc, CUfunc_cache) {
  return accept(hfunc);
}
CUresult cuFuncSetSharedMemConfig(CUfunction hfunc, CUsharedconfig) {
  return accept(hfunc);
}
CUresult cuFuncLoad(CUfunction function) {
  return accept(function);
}
CUresult cuFuncIsLoaded(CUfunctionLoadingState *state, CUfunction function) {
  return report(function, state, [](const Function &) { return CU_FUNCTION_LOADING_STATE_LOADED; });
}

}  // namespace simcuda
