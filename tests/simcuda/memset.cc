// Fills. Even the synchronous form runs asynchronously to the host, as the CUDA manuals say, unless the target is host
// memory or SYNC_MEMOPS is set on it. Layer: fill.h. Threads: any.
#include <algorithm>
#include <cstring>

#include "implemented.h"
#include "tests/simcuda/fill.h"

namespace simcuda {
namespace {

template <class Element>
std::function<void()> write_rows(std::byte *first, const Fill &fill) {
  return [=] {
    for (std::size_t row = 0; row < fill.height; ++row) {
      std::fill_n(reinterpret_cast<Element *>(first + row * fill.pitch), fill.width, static_cast<Element>(fill.value));
    }
  };
}

template <class Element>
CUresult fill(CUdeviceptr to, std::size_t pitch, Element value, std::size_t width, std::size_t height, CUstream stream,
              Form form) {
  Lock lock(driver().mutex);
  std::shared_ptr<Stream> queue;
  if (const CUresult error = find_stream(lock, stream, &queue); error != CUDA_SUCCESS) return error;
  const Fill wanted{to, pitch, value, sizeof(Element), width, height};
  Place target;
  Work work;
  const CUresult error = plan_fill(*current_or_null(), reach_of(*queue), wanted, &target, &work);
  if (error != CUDA_SUCCESS || !work.run) return error;
  const bool waits = form == Form::kSynchronous && target.waits();
  return run(lock, queue, form, waits ? Until::kDone : Until::kQueued, std::move(work));
}

}  // namespace

CUresult plan_fill(const Context &context, Reach reach, const Fill &fill, Place *target, Work *work) {
  std::size_t row_bytes = 0, bytes = 0;
  if (__builtin_mul_overflow(fill.width, fill.element_bytes, &row_bytes)) return CUDA_ERROR_INVALID_VALUE;
  if (fill.width == 0 || fill.height == 0) return CUDA_SUCCESS;
  const bool rows_fit = fill.height == 1 || (fill.pitch >= row_bytes && fill.pitch % fill.element_bytes == 0);
  if (fill.to % fill.element_bytes != 0 || !rows_fit) return CUDA_ERROR_INVALID_VALUE;
  if (__builtin_mul_overflow(fill.height - 1, fill.pitch, &bytes) || __builtin_add_overflow(bytes, row_bytes, &bytes)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  *target = device_place(context, Use::kWrite, reach, fill.to, bytes);
  if (target->kind == Place::Kind::kNowhere) return CUDA_ERROR_INVALID_VALUE;
  *work = {CU_GRAPH_NODE_TYPE_MEMSET, fill.element_bytes == 1   ? write_rows<unsigned char>(target->bytes, fill)
                                      : fill.element_bytes == 2 ? write_rows<unsigned short>(target->bytes, fill)
                                                                : write_rows<unsigned int>(target->bytes, fill)};
  return CUDA_SUCCESS;
}

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
