// Primary contexts: retained at first use, bound to threads, released at exit. Layer: startup, kernel (unload at exit).
// Threads: one mutex guards the retains; it is held across a driver call so that two threads do not retain twice.
// Called from: every call that needs a context; exit, after the program's own handlers.
#include "context.h"

#include <pthread.h>

#include <atomic>

#include "kernel.h"

namespace simcudart {

namespace {

constexpr int kMaxDevices = 64;

struct Primary {
  CUcontext handle = nullptr;  // kept after a reset, to recognise it
  int retains = 0;
  bool alive = false;
};

pthread_mutex_t primaries_mutex = PTHREAD_MUTEX_INITIALIZER;
Primary primaries[kMaxDevices];          // guarded by primaries_mutex
std::atomic<unsigned> generation = {1};  // a reset increments it: older bindings are void

thread_local int device_of_thread = 0;
thread_local unsigned bound_generation = 0;

// A primary context that was reset may still be current; the driver would refuse it.
bool was_reset(CUcontext context) {
  pthread_mutex_lock(&primaries_mutex);
  bool found = false;
  for (const Primary &primary : primaries) found = found || (primary.handle == context && !primary.alive);
  pthread_mutex_unlock(&primaries_mutex);
  return found;
}

CUresult retain(int device, CUcontext *context) {
  pthread_mutex_lock(&primaries_mutex);
  Primary &primary = primaries[device];
  CUresult result = CUDA_SUCCESS;
  if (!primary.alive) {
    result = call(driver.cuDevicePrimaryCtxRetain, &primary.handle, devices().first[device].handle);
    if (result == CUDA_SUCCESS) {
      primary.alive = true;
      ++primary.retains;
    }
  }
  *context = primary.handle;
  pthread_mutex_unlock(&primaries_mutex);
  return result;
}

// The device of the current context; unchanged if the query fails.
void learn_device(CUcontext current) {
  CUdevice handle = 0;
  if (call(driver.cuCtxGetDevice_v2, &handle, current) != CUDA_SUCCESS) return;
  for (int i = 0; i < devices().count; ++i) {
    if (devices().first[i].handle == handle) device_of_thread = i;
  }
}

// The measured sequence SetCurrent, Retain, GetCurrent, GetDevice; the second SetCurrent stands for what the real
// runtime and the driver exchange through their private tables.
cudaError_t bind_primary(int device) {
  if (device >= kMaxDevices) return cudaErrorInvalidDevice;
  CUresult result = call(driver.cuCtxSetCurrent, static_cast<CUcontext>(nullptr));
  CUcontext context = nullptr;
  if (result == CUDA_SUCCESS) result = retain(device, &context);
  if (result == CUDA_SUCCESS) result = call(driver.cuCtxSetCurrent, context);
  if (result == CUDA_SUCCESS) result = call(driver.cuCtxGetCurrent, &context);
  if (result != CUDA_SUCCESS) return to_runtime(result);
  device_of_thread = device;
  learn_device(context);
  bound_generation = generation.load();
  return cudaSuccess;
}

// A library destructor, not atexit: runs after the destructors of the program and of most libraries, as in the real
// runtime. The program's allocations are not freed here; the driver frees them with the context.
__attribute__((destructor)) void release_at_exit() {
  unload_kernels();
  for (int i = 0; i < kMaxDevices; ++i) {
    for (; primaries[i].retains > 0; --primaries[i].retains) {
      call(driver.cuDevicePrimaryCtxRelease, devices().first[i].handle);
    }
  }
}

}  // namespace

int thread_device() {
  return device_of_thread;
}

cudaError_t bind_thread() {
  if (bound_generation == generation.load()) return cudaSuccess;
  return bind_thread_again();
}

cudaError_t bind_thread_again() {
  CUcontext current = nullptr;
  if (call(driver.cuCtxGetCurrent, &current) == CUDA_SUCCESS && current != nullptr && !was_reset(current)) {
    learn_device(current);
    bound_generation = generation.load();
    return cudaSuccess;
  }
  return bind_primary(device_of_thread);
}

cudaError_t bind_thread_to(int device) {
  return bind_primary(device);
}

cudaError_t reset_thread_device() {
  const int device = device_of_thread;
  pthread_mutex_lock(&primaries_mutex);
  Primary &primary = primaries[device];
  CUresult result = CUDA_SUCCESS;
  if (primary.alive) {
    unsigned version = 0;
    call(driver.cuCtxGetApiVersion, primary.handle, &version);
    result = call(driver.cuDevicePrimaryCtxReset, devices().first[device].handle);
    primary.alive = false;  // a reset is no release: the retain remains
    generation.fetch_add(1);
  }
  pthread_mutex_unlock(&primaries_mutex);
  return to_runtime(result);
}

}  // namespace simcudart
