// The context for the calling thread's work, bound as late as by the real runtime. Layer: startup, last_error.
// Threads: any; the binding belongs to its thread. Owns: one or more retains of each primary context until exit.
#pragma once

#include "last_error.h"
#include "startup.h"

namespace simcudart {

// Ensures that the thread has a current context: the context that the program made current through the driver API, else
// the primary context of the thread's device.
cudaError_t bind_thread();

// Does the same for a thread whose context was destroyed, or, with `device`, to switch devices. `device` is in range.
cudaError_t bind_thread_again();
cudaError_t bind_thread_to(int device);

// The calling thread's device.
int thread_device();

// Resets the primary context of the calling thread's device and all that it contains.
cudaError_t reset_thread_device();

inline CUdeviceptr address(const void *pointer) {
  return reinterpret_cast<CUdeviceptr>(pointer);
}

// Runs `work` (returning CUresult) in the thread's context. If the driver reports that there is no context, creates one
// and repeats the call.
template <typename Work>
cudaError_t in_context(Work work) {
  cudaError_t error = start();
  if (error == cudaSuccess) error = bind_thread();
  if (error != cudaSuccess) return remember(error);
  CUresult result = work();
  if (result == CUDA_ERROR_INVALID_CONTEXT) {
    error = bind_thread_again();
    if (error != cudaSuccess) return remember(error);
    result = work();
  }
  return remember(to_runtime(result));
}

// The stream-ordered allocation calls try first and create a context only when the driver reports that there is none
// (measured).
template <typename Work>
cudaError_t in_context_if_asked(Work work) {
  cudaError_t error = start();
  if (error != cudaSuccess) return remember(error);
  CUresult result = work();
  if (result == CUDA_ERROR_INVALID_CONTEXT) {
    error = bind_thread_again();
    if (error != cudaSuccess) return remember(error);
    result = work();
  }
  return remember(to_runtime(result));
}

}  // namespace simcudart
