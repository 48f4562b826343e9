// Copies and fills. Layer: context. Threads: any.
// The driver function used for each direction is the real runtime's choice (measured).
#include "context.h"

using namespace simcudart;

namespace {

// A host-to-host copy is a 2D copy of one row.
CUDA_MEMCPY2D one_row(void *to, const void *from, size_t bytes) {
  CUDA_MEMCPY2D row = {};
  row.srcMemoryType = CU_MEMORYTYPE_HOST;
  row.srcHost = from;
  row.srcPitch = bytes;
  row.dstMemoryType = CU_MEMORYTYPE_HOST;
  row.dstHost = to;
  row.dstPitch = bytes;
  row.WidthInBytes = bytes;
  row.Height = 1;
  return row;
}

CUresult copy(void *to, const void *from, size_t bytes, cudaMemcpyKind kind) {
  switch (kind) {
    case cudaMemcpyHostToDevice:
      return call(driver.cuMemcpyHtoD_v2, address(to), from, bytes);
    case cudaMemcpyDeviceToHost:
      return call(driver.cuMemcpyDtoH_v2, to, address(from), bytes);
    case cudaMemcpyDeviceToDevice:
      return call(driver.cuMemcpyDtoD_v2, address(to), address(from), bytes);
    case cudaMemcpyHostToHost: {
      const CUDA_MEMCPY2D row = one_row(to, from, bytes);
      return call(driver.cuMemcpy2DUnaligned_v2, &row);
    }
    case cudaMemcpyDefault:
      break;
  }
  return call(driver.cuMemcpy, address(to), address(from), bytes);
}

CUresult copy_in_order(void *to, const void *from, size_t bytes, cudaMemcpyKind kind, CUstream stream) {
  switch (kind) {
    case cudaMemcpyHostToDevice:
      return call(driver.cuMemcpyHtoDAsync_v2, address(to), from, bytes, stream);
    case cudaMemcpyDeviceToHost:
      return call(driver.cuMemcpyDtoHAsync_v2, to, address(from), bytes, stream);
    case cudaMemcpyDeviceToDevice:
      return call(driver.cuMemcpyDtoDAsync_v2, address(to), address(from), bytes, stream);
    case cudaMemcpyHostToHost: {
      const CUDA_MEMCPY2D row = one_row(to, from, bytes);
      return call(driver.cuMemcpy2DAsync_v2, &row, stream);
    }
    case cudaMemcpyDefault:
      break;
  }
  return call(driver.cuMemcpyAsync, address(to), address(from), bytes, stream);
}

bool known(cudaMemcpyKind kind) {
  return kind >= cudaMemcpyHostToHost && kind <= cudaMemcpyDefault;
}

}  // namespace

extern "C" {

cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, cudaMemcpyKind kind) {
  if (!known(kind)) return remember(cudaErrorInvalidMemcpyDirection);
  return in_context([=] { return copy(to, from, bytes, kind); });
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  if (!known(kind)) return remember(cudaErrorInvalidMemcpyDirection);
  return in_context([=] { return copy_in_order(to, from, bytes, kind, stream); });
}

cudaError_t cudaMemset(void *pointer, int value, size_t bytes) {
  return in_context(
      [=] { return call(driver.cuMemsetD8_v2, address(pointer), static_cast<unsigned char>(value), bytes); });
}

cudaError_t cudaMemsetAsync(void *pointer, int value, size_t bytes, cudaStream_t stream) {
  return in_context(
      [=] { return call(driver.cuMemsetD8Async, address(pointer), static_cast<unsigned char>(value), bytes, stream); });
}

cudaError_t cudaMemset2D(void *pointer, size_t pitch, int value, size_t width, size_t height) {
  return in_context([=] {
    return call(driver.cuMemsetD2D8_v2, address(pointer), pitch, static_cast<unsigned char>(value), width, height);
  });
}

}  // extern "C"
