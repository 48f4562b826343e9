// Fills. Even the synchronous form runs asynchronously to the host, as the CUDA manuals say, unless the target is host
// memory or SYNC_MEMOPS is set on it. Layer: place.h. Threads: any.
#include <algorithm>
#include <cstring>

#include "implemented.h"
#include "tests/simcuda/driver.h"
#include "tests/simcuda/place.h"

namespace simcuda {
namespace {

template <class Element>
CUresult fill(CUdeviceptr to, std::size_t pitch, Element value, std::size_t width, std::size_t height, CUstream stream,
              Form form) {
  Lock lock(driver().mutex);
  Context *context = nullptr;
  if (const CUresult error = current(lock, &context); error != CUDA_SUCCESS) return error;
  std::size_t row_bytes = 0, bytes = 0;
  if (__builtin_mul_overflow(width, sizeof(Element), &row_bytes)) return CUDA_ERROR_INVALID_VALUE;
  if (width == 0 || height == 0) return CUDA_SUCCESS;
  if (to % sizeof(Element) != 0 || (height > 1 && (pitch < row_bytes || pitch % sizeof(Element) != 0))) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (__builtin_mul_overflow(height - 1, pitch, &bytes) || __builtin_add_overflow(bytes, row_bytes, &bytes)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const Place target = device_place(*context, Use::kWrite, to, bytes);
  if (target.kind == Place::Kind::kNowhere) return CUDA_ERROR_INVALID_VALUE;
  return run(lock, stream, form, form == Form::kSynchronous && target.waits() ? Until::kDone : Until::kQueued, [=] {
    for (std::size_t row = 0; row < height; ++row) {
      std::fill_n(reinterpret_cast<Element *>(target.bytes + row * pitch), width, value);
    }
  });
}

}  // namespace

CUresult cuMemsetD8_v2(CUdeviceptr dstDevice, unsigned char uc, size_t N) {
  return fill(dstDevice, 0, uc, N, 1, nullptr, Form::kSynchronous);
}
CUresult cuMemsetD16_v2(CUdeviceptr dstDevice, unsigned short us, size_t N) {
  return fill(dstDevice, 0, us, N, 1, nullptr, Form::kSynchronous);
}
CUresult cuMemsetD32_v2(CUdeviceptr dstDevice, unsigned int ui, size_t N) {
  return fill(dstDevice, 0, ui, N, 1, nullptr, Form::kSynchronous);
}
CUresult cuMemsetD8Async(CUdeviceptr dstDevice, unsigned char uc, size_t N, CUstream hStream) {
  return fill(dstDevice, 0, uc, N, 1, hStream, Form::kAsynchronous);
}
CUresult cuMemsetD16Async(CUdeviceptr dstDevice, unsigned short us, size_t N, CUstream hStream) {
  return fill(dstDevice, 0, us, N, 1, hStream, Form::kAsynchronous);
}
CUresult cuMemsetD32Async(CUdeviceptr dstDevice, unsigned int ui, size_t N, CUstream hStream) {
  return fill(dstDevice, 0, ui, N, 1, hStream, Form::kAsynchronous);
}
CUresult cuMemsetD2D8_v2(CUdeviceptr dstDevice, size_t dstPitch, unsigned char uc, size_t Width, size_t Height) {
  return fill(dstDevice, dstPitch, uc, Width, Height, nullptr, Form::kSynchronous);
}
CUresult cuMemsetD2D16_v2(CUdeviceptr dstDevice, size_t dstPitch, unsigned short us, size_t Width, size_t Height) {
  return fill(dstDevice, dstPitch, us, Width, Height, nullptr, Form::kSynchronous);
}
CUresult cuMemsetD2D32_v2(CUdeviceptr dstDevice, size_t dstPitch, unsigned int ui, size_t Width, size_t Height) {
  return fill(dstDevice, dstPitch, ui, Width, Height, nullptr, Form::kSynchronous);
}
CUresult cuMemsetD2D8Async(CUdeviceptr dstDevice, size_t dstPitch, unsigned char uc, size_t Width, size_t Height,
                           CUstream hStream) {
  return fill(dstDevice, dstPitch, uc, Width, Height, hStream, Form::kAsynchronous);
}
CUresult cuMemsetD2D16Async(CUdeviceptr dstDevice, size_t dstPitch, unsigned short us, size_t Width, size_t Height,
                            CUstream hStream) {
  return fill(dstDevice, dstPitch, us, Width, Height, hStream, Form::kAsynchronous);
}
CUresult cuMemsetD2D32Async(CUdeviceptr dstDevice, size_t dstPitch, unsigned int ui, size_t Width, size_t Height,
                            CUstream hStream) {
  return fill(dstDevice, dstPitch, ui, Width, Height, hStream, Form::kAsynchronous);
}

}  // namespace simcuda
