// Error codes: converts driver codes to runtime codes, and keeps each thread's last error. Layer: the public header.
// Threads: the last error belongs to its thread.
#pragma once

#include "cuda_runtime_api.h"
#include "driver.h"

namespace simcudart {

// Since CUDA 10.1, codes that exist in both enums have equal values.
inline cudaError_t to_runtime(CUresult result) {
  return static_cast<cudaError_t>(result);
}

// Stores a failure for cudaGetLastError and returns it; success changes nothing.
cudaError_t remember(cudaError_t error);

}  // namespace simcudart
