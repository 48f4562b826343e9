// Error codes: the driver's turned into the runtime's, and the last one of each thread. Layer: the public header.
// Threads: the last error belongs to its thread.
#pragma once

#include "cuda_runtime_api.h"
#include "driver.h"

namespace simcudart {

// Since CUDA 10.1 the two enums have the same values for every code that both have.
inline cudaError_t to_runtime(CUresult result) {
  return static_cast<cudaError_t>(result);
}

// Keeps a failure for cudaGetLastError and hands it on; a success changes nothing.
cudaError_t remember(cudaError_t error);

}  // namespace simcudart
