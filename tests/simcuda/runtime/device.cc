// The device calls of the runtime API. Layer: context. Threads: any.
#include <cstring>

#include "context.h"

using namespace simcudart;

namespace {

bool in_range(int device) {
  return device >= 0 && device < devices().count;
}

}  // namespace

extern "C" {

cudaError_t cudaRuntimeGetVersion(int *version) {
  if (version == nullptr) return remember(cudaErrorInvalidValue);
  *version = CUDART_VERSION;
  return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int *version) {
  if (version == nullptr) return remember(cudaErrorInvalidValue);
  *version = 0;  // the real runtime's answer without a driver
  const cudaError_t error = start();
  if (error == cudaErrorInsufficientDriver) return cudaSuccess;
  return remember(to_runtime(call(driver.cuDriverGetVersion, version)));
}

cudaError_t cudaGetDeviceCount(int *count) {
  if (count == nullptr) return remember(cudaErrorInvalidValue);
  const cudaError_t error = start();
  *count = error == cudaSuccess ? devices().count : 0;
  return remember(error);
}

cudaError_t cudaSetDevice(int device) {
  const cudaError_t error = start();
  if (error != cudaSuccess) return remember(error);
  return remember(in_range(device) ? bind_thread_to(device) : cudaErrorInvalidDevice);
}

cudaError_t cudaGetDevice(int *device) {
  if (device == nullptr) return remember(cudaErrorInvalidValue);
  const cudaError_t error = start();
  if (error == cudaSuccess) *device = thread_device();
  return remember(error);
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp *properties, int device) {
  if (properties == nullptr) return remember(cudaErrorInvalidValue);
  const cudaError_t error = start();
  if (error != cudaSuccess) return remember(error);
  if (!in_range(device)) return remember(cudaErrorInvalidDevice);
  const Device &known = devices().first[device];
  *properties = {};
  std::memcpy(properties->name, known.name, sizeof properties->name);
  std::memcpy(properties->uuid.bytes, known.uuid.bytes, sizeof properties->uuid.bytes);
  properties->totalGlobalMem = known.total_bytes;
  properties->major = known.attributes[CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR];
  properties->minor = known.attributes[CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR];
  properties->multiProcessorCount = known.attributes[CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT];
  properties->maxThreadsPerBlock = known.attributes[CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK];
  properties->warpSize = known.attributes[CU_DEVICE_ATTRIBUTE_WARP_SIZE];
  return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize() {
  return in_context([] {
    CUcontext current = nullptr;
    const CUresult result = call(driver.cuCtxGetCurrent, &current);
    return result == CUDA_SUCCESS ? call(driver.cuCtxSynchronize_v2, current) : result;
  });
}

cudaError_t cudaDeviceReset() {
  const cudaError_t error = start();
  return remember(error == cudaSuccess ? reset_thread_device() : error);
}

}  // extern "C"
