#include "tests/simcuda/code.h"

#include <unistd.h>

#include <algorithm>

#include "implemented.h"
#include "tests/simcuda/capture.h"

namespace simcuda {
namespace {

template <class Handle>
Image *find_image(Handle handle) {
  const auto found = driver().images.find(handle);
  return found == driver().images.end() ? nullptr : found->second.get();
}

// The buffer of printf is taken when code comes that may use it: here any.
CUresult take_for_load(Image &image, Context &context) {
  if (const CUresult error = make_globals(image, context); error != CUDA_SUCCESS) return error;
  const std::size_t usual = default_limit(CU_LIMIT_PRINTF_FIFO_SIZE);
  return resize_limit(context, CU_LIMIT_PRINTF_FIFO_SIZE,
                      std::max(context.limits[CU_LIMIT_PRINTF_FIFO_SIZE], usual) - usual);
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
  if (context != nullptr) {
    if (const CUresult error = take_for_load(*made, *context); error != CUDA_SUCCESS) return error;
  }
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
  if (image == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  context = image->context != nullptr ? image->context : context->root;
  if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult error = make_globals(*image, *context); error != CUDA_SUCCESS) return error;
  const auto known = image->globals.find({context, name});
  if (known == image->globals.end()) return CUDA_ERROR_NOT_FOUND;
  if (dptr != nullptr) *dptr = known->second;
  if (bytes != nullptr) *bytes = allocation_at(known->second)->second.requested;
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

CUresult make_globals(Image &image, Context &context) {
  if (image.context != nullptr && image.context != &context) return CUDA_SUCCESS;  // a module has its own already
  std::vector<std::pair<std::string, std::uint64_t>> made;
  for (const auto &[name, bytes] : all_globals()) {
    std::uint64_t address = 0;
    if (image.globals.count({&context, name}) != 0) continue;
    if (const CUresult error = allocate(context, bytes, &address); error != CUDA_SUCCESS) {
      for (const auto &[other, block] : made) release_allocation(allocation_at(block));
      return error;
    }
    made.emplace_back(name, address);
  }
  for (const auto &[name, address] : made) image.globals[{&context, name}] = address;
  return CUDA_SUCCESS;
}

CUresult take_for_launch(Context &context) {
  const std::size_t usual = default_limit(CU_LIMIT_MALLOC_HEAP_SIZE);
  return resize_limit(context, CU_LIMIT_MALLOC_HEAP_SIZE,
                      std::max(context.limits[CU_LIMIT_MALLOC_HEAP_SIZE], usual) - usual);
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
  Lock lock(driver().mutex);
  Context *context = nullptr;
  if (const CUresult error = current(lock, &context); error != CUDA_SUCCESS) return error;
  Image *image = find_image(library);
  if (image == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (pMod == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult error = make_globals(*image, *context->root); error != CUDA_SUCCESS) return error;
  *pMod = reinterpret_cast<CUmodule>(library);
  return CUDA_SUCCESS;
}

}  // namespace simcuda
