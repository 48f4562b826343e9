// Launching by host address: nvcc's generated code registers stub and name, here simcudart_register_kernel does.
// Layer: context. Threads: any; one mutex guards the registrations. Owns: one library, until exit.
// The library and the kernel are loaded at the first launch, as in the real runtime (measured).
#include "kernel.h"

#include <pthread.h>

#include "context.h"

namespace simcudart {

namespace {

constexpr int kMaxKernels = 256;
// The simulated driver accepts any image; its kernels are those that the test registered by name.
constexpr char kImage[] = "simcudart kernels";

struct Kernel {
  const void *function;
  const char *name;
  CUkernel handle;
};

pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
Kernel kernels[kMaxKernels];  // guarded by mutex
int kernel_count = 0;         // guarded by mutex
CUlibrary library = nullptr;  // guarded by mutex

CUresult load(Kernel &kernel) {
  CUresult result = CUDA_SUCCESS;
  if (library == nullptr) {
    result = call(driver.cuLibraryLoadData, &library, static_cast<const void *>(kImage), nullptr, nullptr, 0U, nullptr,
                  nullptr, 0U);
  }
  if (result == CUDA_SUCCESS && kernel.handle == nullptr) {
    result = call(driver.cuLibraryGetKernel, &kernel.handle, library, kernel.name);
  }
  return result;
}

// cudaErrorInvalidDeviceFunction: this address is not registered.
cudaError_t find(const void *function, CUkernel *handle) {
  pthread_mutex_lock(&mutex);
  cudaError_t error = cudaErrorInvalidDeviceFunction;
  for (int i = 0; i < kernel_count; ++i) {
    if (kernels[i].function != function) continue;
    error = to_runtime(load(kernels[i]));
    *handle = kernels[i].handle;
    break;
  }
  pthread_mutex_unlock(&mutex);
  return error;
}

}  // namespace

void unload_kernels() {
  if (library != nullptr) call(driver.cuLibraryUnload, library);
  library = nullptr;
}

}  // namespace simcudart

using namespace simcudart;

extern "C" {

cudaError_t simcudart_register_kernel(const void *function, const char *name) {
  if (function == nullptr || name == nullptr) return remember(cudaErrorInvalidValue);
  pthread_mutex_lock(&mutex);
  const bool room = kernel_count < kMaxKernels;
  if (room) kernels[kernel_count++] = {function, name, nullptr};
  pthread_mutex_unlock(&mutex);
  return room ? cudaSuccess : remember(cudaErrorInvalidValue);
}

cudaError_t cudaLaunchKernel(const void *function, dim3 grid, dim3 block, void **arguments, size_t shared_bytes,
                             cudaStream_t stream) {
  cudaError_t error = start();
  if (error == cudaSuccess) error = bind_thread();
  CUkernel kernel = nullptr;
  if (error == cudaSuccess) error = find(function, &kernel);
  if (error != cudaSuccess) return remember(error);
  return in_context([&] {
    // The driver takes a CUkernel wherever it takes a CUfunction (cuda.h, cuLaunchKernel).
    return call(driver.cuLaunchKernel, reinterpret_cast<CUfunction>(kernel), grid.x, grid.y, grid.z, block.x, block.y,
                block.z, static_cast<unsigned>(shared_bytes), stream, arguments, nullptr);
  });
}

cudaError_t cudaGetDriverEntryPointByVersion(const char *symbol, void **function, unsigned int version,
                                             unsigned long long flags, cudaDriverEntryPointQueryResult *status) {
  if (symbol == nullptr || function == nullptr) return remember(cudaErrorInvalidValue);
  const cudaError_t error = start();
  if (error != cudaSuccess) return remember(error);
  CUdriverProcAddressQueryResult found = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  const CUresult result = call(driver.cuGetProcAddress_v2, symbol, function, static_cast<int>(version),
                               static_cast<cuuint64_t>(flags), &found);
  if (status != nullptr) *status = static_cast<cudaDriverEntryPointQueryResult>(found);
  // A missing name is a valid answer, not a failure: the status reports it.
  if (result == CUDA_ERROR_NOT_FOUND) {
    *function = nullptr;
    return cudaSuccess;
  }
  return remember(to_runtime(result));
}

}  // extern "C"
