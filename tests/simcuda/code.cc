#include "tests/simcuda/code.h"

#include <unistd.h>

#include "implemented.h"
#include "tests/simcuda/capture.h"

namespace simcuda {
namespace {

template <class Handle>
Image *find_image(Handle handle) {
  const auto found = driver().images.find(handle);
  return found == driver().images.end() ? nullptr : found->second.get();
}

template <class Handle>
CUresult load(Handle *handle, const void *image, bool library) {
  Lock lock(driver().mutex);
  Context *context = nullptr;
  if (!library) {
    if (const CUresult error = current(lock, &context); error != CUDA_SUCCESS) return error;
    if (const CUresult error = may_act_unseen(); error != CUDA_SUCCESS) return error;
    context = context->root;
  }
  if (handle == nullptr || image == nullptr) return CUDA_ERROR_INVALID_VALUE;
  auto made = std::make_shared<Image>();
  made->context = context;
  *handle = reinterpret_cast<Handle>(made.get());
  driver().images.emplace(made.get(), std::move(made));
  return CUDA_SUCCESS;
}

template <class Handle>
CUresult unload(Handle handle) {
  Lock lock(driver().mutex);
  Image *image = find_image(handle);
  if (image == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (const CUresult error = may_act_unseen(); error != CUDA_SUCCESS) return error;
  // Launches of its functions may still be queued.
  if (image->context != nullptr) drain(lock, *image->context);
  for (const auto &[key, address] : image->globals) {
    if (const auto block = allocation_at(address); block != driver().allocations.end()) release_allocation(block);
  }
  for (const auto &[name, function] : image->functions) driver().functions.erase(function);
  driver().images.erase(image);
  return CUDA_SUCCESS;
}

template <class Handle>
CUresult global(CUdeviceptr *dptr, size_t *bytes, Handle handle, const char *name) {
  Lock lock(driver().mutex);
  Context *context = nullptr;
  if (const CUresult error = current(lock, &context); error != CUDA_SUCCESS) return error;
  Image *image = find_image(handle);
  context = context->root;
  if (image == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const std::size_t size = global_bytes(name);
  if (size == 0) return CUDA_ERROR_NOT_FOUND;
  const auto known = image->globals.find({context, name});
  std::uint64_t address = known == image->globals.end() ? 0 : known->second;
  if (address == 0) {
    if (const CUresult error = allocate(*context, size, &address); error != CUDA_SUCCESS) return error;
    image->globals[{context, name}] = address;
  }
  if (dptr != nullptr) *dptr = address;
  if (bytes != nullptr) *bytes = size;
  return CUDA_SUCCESS;
}

CUresult readable(const char *path) {
  if (path == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return ::access(path, R_OK) == 0 ? CUDA_SUCCESS : CUDA_ERROR_FILE_NOT_FOUND;
}

template <class Handle, class Name>
CUresult function(Handle *handle, Name owner, const char *name) {
  const Lock lock(driver().mutex);
  Image *image = find_image(owner);
  if (image == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (handle == nullptr || name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Function *found = function_in(*image, name);
  if (found == nullptr) return CUDA_ERROR_NOT_FOUND;
  *handle = reinterpret_cast<Handle>(found);
  return CUDA_SUCCESS;
}

}  // namespace

Function *find_function(const void *handle) {
  const auto found = driver().functions.find(handle);
  return found == driver().functions.end() ? nullptr : found->second.get();
}

Function *function_in(Image &image, const char *name) {
  if (const auto known = image.functions.find(name); known != image.functions.end()) return known->second;
  const Kernel *kernel = find_kernel(name);
  if (kernel == nullptr) return nullptr;
  auto made = std::make_shared<Function>();
  made->kernel = kernel;
  made->image = &image;
  made->attributes[CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK] = 1024;
  made->attributes[CU_FUNC_ATTRIBUTE_NUM_REGS] = 32;
  made->attributes[CU_FUNC_ATTRIBUTE_PTX_VERSION] = 90;
  made->attributes[CU_FUNC_ATTRIBUTE_BINARY_VERSION] = 90;
  made->attributes[CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES] = 49152;
  made->attributes[CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT] = -1;
  image.functions.emplace(name, made.get());
  driver().functions.emplace(made.get(), made);
  return made.get();
}

void forget_code_of(Context &context) {
  Driver &state = driver();
  std::erase_if(state.functions, [&](const auto &entry) { return entry.second->image->context == &context; });
  std::erase_if(state.images, [&](const auto &entry) { return entry.second->context == &context; });
  for (auto &[handle, image] : state.images) {
    std::erase_if(image->globals, [&](const auto &entry) { return entry.first.first == &context; });
  }
}

CUresult cuModuleLoad(CUmodule *module, const char *fname) {
  if (const CUresult error = readable(fname); error != CUDA_SUCCESS) return error;
  return load(module, fname, false);
}
CUresult cuModuleLoadData(CUmodule *module, const void *image) {
  return load(module, image, false);
}
CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned int, CUjit_option *, void **) {
  return load(module, image, false);
}
CUresult cuModuleLoadFatBinary(CUmodule *module, const void *fatCubin) {
  return load(module, fatCubin, false);
}
CUresult cuModuleUnload(CUmodule hmod) {
  return unload(hmod);
}
CUresult cuModuleGetFunction(CUfunction *hfunc, CUmodule hmod, const char *name) {
  return function(hfunc, hmod, name);
}
CUresult cuModuleGetGlobal_v2(CUdeviceptr *dptr, size_t *bytes, CUmodule hmod, const char *name) {
  return global(dptr, bytes, hmod, name);
}

CUresult cuModuleGetLoadingMode(CUmoduleLoadingMode *mode) {
  if (mode == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *mode = CU_MODULE_LAZY_LOADING;
  return CUDA_SUCCESS;
}

CUresult cuModuleGetFunctionCount(unsigned int *count, CUmodule mod) {
  const Lock lock(driver().mutex);
  if (find_image(mod) == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *count = static_cast<unsigned>(all_kernels().size());
  return CUDA_SUCCESS;
}

CUresult cuLibraryLoadData(CUlibrary *library, const void *code, CUjit_option *, void **, unsigned int,
                           CUlibraryOption *, void **, unsigned int) {
  return load(library, code, true);
}
CUresult cuLibraryLoadFromFile(CUlibrary *library, const char *fileName, CUjit_option *, void **, unsigned int,
                               CUlibraryOption *, void **, unsigned int) {
  if (const CUresult error = readable(fileName); error != CUDA_SUCCESS) return error;
  return load(library, fileName, true);
}
CUresult cuLibraryUnload(CUlibrary library) {
  return unload(library);
}
CUresult cuLibraryGetKernel(CUkernel *pKernel, CUlibrary library, const char *name) {
  return function(pKernel, library, name);
}
CUresult cuLibraryGetGlobal(CUdeviceptr *dptr, size_t *bytes, CUlibrary library, const char *name) {
  return global(dptr, bytes, library, name);
}

// A library serves as its own module.
CUresult cuLibraryGetModule(CUmodule *pMod, CUlibrary library) {
  const Lock lock(driver().mutex);
  if (find_image(library) == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (pMod == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *pMod = reinterpret_cast<CUmodule>(library);
  return CUDA_SUCCESS;
}

}  // namespace simcuda
