/* cuda_runtime_api.h with the typed allocation calls that C++ programs use. */
#ifndef SIMCUDART_CUDA_RUNTIME_H_
#define SIMCUDART_CUDA_RUNTIME_H_

#include "cuda_runtime_api.h"

#ifdef __cplusplus

template <typename T>
cudaError_t cudaMalloc(T **pointer, size_t bytes) {
  return cudaMalloc(reinterpret_cast<void **>(pointer), bytes);
}

template <typename T>
cudaError_t cudaMallocHost(T **pointer, size_t bytes, unsigned int flags = 0) {
  return cudaHostAlloc(reinterpret_cast<void **>(pointer), bytes, flags);
}

template <typename T>
cudaError_t cudaMallocPitch(T **pointer, size_t *pitch, size_t width, size_t height) {
  return cudaMallocPitch(reinterpret_cast<void **>(pointer), pitch, width, height);
}

#endif /* __cplusplus */

#endif /* SIMCUDART_CUDA_RUNTIME_H_ */
