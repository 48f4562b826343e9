// The runtime's first call: loads the driver, initialises it, queries every device once. Layer: driver.h.
// Called from: every public function, through start(). Owns: the device table, for ever.
#include "startup.h"

#include <pthread.h>

#include <cstdlib>

#include "last_error.h"

namespace simcudart {

namespace {

constexpr int kOldestDriver = 13000;  // this runtime's own version; older drivers are refused

pthread_once_t once = PTHREAD_ONCE_INIT;
cudaError_t outcome = cudaErrorInitializationError;
Devices known;

CUresult ask(Device &device, int ordinal) {
  CUresult result = call(driver.cuDeviceGet, &device.handle, ordinal);
  if (result == CUDA_SUCCESS) {
    result = call(driver.cuDeviceGetName, device.name, static_cast<int>(sizeof device.name), device.handle);
  }
  if (result == CUDA_SUCCESS) result = call(driver.cuDeviceTotalMem_v2, &device.total_bytes, device.handle);
  for (int i = 1; i <= kAttributes && result == CUDA_SUCCESS; ++i) {
    // A driver may lack an attribute; it then stays 0.
    call(driver.cuDeviceGetAttribute, &device.attributes[i], static_cast<CUdevice_attribute>(i), device.handle);
  }
  if (result == CUDA_SUCCESS) result = call(driver.cuDeviceGetUuid, &device.uuid, device.handle);
  return result;
}

CUresult ask_all() {
  int count = 0;
  CUresult result = call(driver.cuDeviceGetCount, &count);
  if (result != CUDA_SUCCESS) return result;
  if (count <= 0) return CUDA_ERROR_NO_DEVICE;
  auto *table = static_cast<Device *>(std::calloc(static_cast<size_t>(count), sizeof(Device)));
  if (table == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  for (int i = 0; i < count && result == CUDA_SUCCESS; ++i) result = ask(table[i], i);
  if (result == CUDA_SUCCESS) {
    known.first = table;
    known.count = count;
  } else {
    std::free(table);
  }
  return result;
}

void run_once() {
  if (!load_driver()) {
    outcome = cudaErrorInsufficientDriver;
    return;
  }
  int version = 0;
  CUresult result = call(driver.cuDriverGetVersion, &version);
  if (result == CUDA_SUCCESS && version < kOldestDriver) {
    outcome = cudaErrorInsufficientDriver;
    return;
  }
  if (result == CUDA_SUCCESS) result = call(driver.cuInit, 0U);
  if (result == CUDA_SUCCESS) {
    CUmoduleLoadingMode mode = {};
    call(driver.cuModuleGetLoadingMode, &mode);  // optional: nothing here depends on the result
    result = ask_all();
  }
  outcome = to_runtime(result);
}

}  // namespace

cudaError_t start() {
  pthread_once(&once, run_once);
  return outcome;
}

const Devices &devices() {
  return known;
}

}  // namespace simcudart
