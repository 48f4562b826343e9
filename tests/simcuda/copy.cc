// Copies move real bytes, in stream order. What waits for what is as "API synchronization behavior" of the CUDA manuals
// has it: a copy between devices never waits, one that involves the host does when it is synchronous, and an
// asynchronous one of pageable memory is done with that memory when it returns. Layer: place.h. Threads: any.
#include <algorithm>
#include <cstring>
#include <vector>

#include "implemented.h"
#include "tests/simcuda/capture.h"
#include "tests/simcuda/driver.h"
#include "tests/simcuda/place.h"

namespace simcuda {
namespace {

constexpr std::size_t kStagedBytes = 64 * 1024;  // pageable source of an asynchronous copy: set aside up to here

std::uint64_t number_of(const void *pointer) {
  return reinterpret_cast<std::uintptr_t>(pointer);
}

Until until(Form form, const Place &target, const Place &source) {
  const bool waits = form == Form::kSynchronous
                         ? target.on_host() || source.on_host()
                         : target.kind == Place::Kind::kPageable || source.kind == Place::Kind::kPageable;
  return waits ? Until::kDone : Until::kQueued;
}

Place place(const Context &context, Use use, std::uint64_t address, bool any, std::size_t bytes) {
  return any ? any_place(context, use, address, bytes) : device_place(context, use, address, bytes);
}

CUresult copy(std::uint64_t to, bool to_any, std::uint64_t from, bool from_any, std::size_t bytes, CUstream stream,
              Form form) {
  Lock lock(driver().mutex);
  Context *context = nullptr;
  if (const CUresult error = current(lock, &context); error != CUDA_SUCCESS) return error;
  if (bytes == 0) return CUDA_SUCCESS;
  const Place target = place(*context, Use::kWrite, to, to_any, bytes);
  const Place source = place(*context, Use::kRead, from, from_any, bytes);
  if (target.kind == Place::Kind::kNowhere || source.kind == Place::Kind::kNowhere) return CUDA_ERROR_INVALID_VALUE;
  std::shared_ptr<Stream> queue;
  if (const CUresult error = find_stream(lock, stream, &queue); error != CUDA_SUCCESS) return error;
  if (queue->capture == nullptr && form == Form::kAsynchronous && source.kind == Place::Kind::kPageable &&
      target.kind != Place::Kind::kPageable && bytes <= kStagedBytes) {
    auto staged = std::make_shared<std::vector<std::byte>>(source.bytes, source.bytes + bytes);
    return run(lock, queue, form, Until::kQueued,
               [target, staged] { std::memcpy(target.bytes, staged->data(), staged->size()); });
  }
  return run(lock, queue, form, until(form, target, source), [=] { std::memmove(target.bytes, source.bytes, bytes); });
}

struct Side {
  CUmemorytype type;
  const void *host;
  CUdeviceptr device;
  std::size_t x, y, pitch;
};

// First byte of the rectangle, and the place that holds all of it.
CUresult locate(const Context &context, Use use, const Side &side, std::size_t width, std::size_t height,
                Place *found) {
  if (side.type == CU_MEMORYTYPE_ARRAY) return CUDA_ERROR_NOT_SUPPORTED;
  if (height > 1 && side.pitch < side.x + width) return CUDA_ERROR_INVALID_VALUE;
  const std::uint64_t base = side.type == CU_MEMORYTYPE_HOST ? number_of(side.host) : side.device;
  const std::uint64_t first = base + side.y * side.pitch + side.x;
  const std::uint64_t bytes = (height - 1) * side.pitch + width;
  *found = place(context, use, first, side.type != CU_MEMORYTYPE_DEVICE, bytes);
  return found->kind == Place::Kind::kNowhere ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult copy_2d(const CUDA_MEMCPY2D *pCopy, CUstream stream, Form form) {
  Lock lock(driver().mutex);
  Context *context = nullptr;
  if (const CUresult error = current(lock, &context); error != CUDA_SUCCESS) return error;
  if (pCopy == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUDA_MEMCPY2D asked = *pCopy;
  if (asked.WidthInBytes == 0 || asked.Height == 0) return CUDA_SUCCESS;
  Place target, source;
  const Side from{asked.srcMemoryType, asked.srcHost, asked.srcDevice, asked.srcXInBytes, asked.srcY, asked.srcPitch};
  const Side to{asked.dstMemoryType, asked.dstHost, asked.dstDevice, asked.dstXInBytes, asked.dstY, asked.dstPitch};
  CUresult error = locate(*context, Use::kRead, from, asked.WidthInBytes, asked.Height, &source);
  if (error == CUDA_SUCCESS) error = locate(*context, Use::kWrite, to, asked.WidthInBytes, asked.Height, &target);
  if (error != CUDA_SUCCESS) return error;
  return run(lock, stream, form, until(form, target, source), [=] {
    for (std::size_t row = 0; row < asked.Height; ++row) {
      std::memmove(target.bytes + row * asked.dstPitch, source.bytes + row * asked.srcPitch, asked.WidthInBytes);
    }
  });
}

}  // namespace

CUresult cuMemcpy(CUdeviceptr dst, CUdeviceptr src, size_t ByteCount) {
  return copy(dst, true, src, true, ByteCount, nullptr, Form::kSynchronous);
}
CUresult cuMemcpyAsync(CUdeviceptr dst, CUdeviceptr src, size_t ByteCount, CUstream hStream) {
  return copy(dst, true, src, true, ByteCount, hStream, Form::kAsynchronous);
}
CUresult cuMemcpyHtoD_v2(CUdeviceptr dstDevice, const void *srcHost, size_t ByteCount) {
  return copy(dstDevice, false, number_of(srcHost), true, ByteCount, nullptr, Form::kSynchronous);
}
CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr dstDevice, const void *srcHost, size_t ByteCount, CUstream hStream) {
  return copy(dstDevice, false, number_of(srcHost), true, ByteCount, hStream, Form::kAsynchronous);
}
CUresult cuMemcpyDtoH_v2(void *dstHost, CUdeviceptr srcDevice, size_t ByteCount) {
  return copy(number_of(dstHost), true, srcDevice, false, ByteCount, nullptr, Form::kSynchronous);
}
CUresult cuMemcpyDtoHAsync_v2(void *dstHost, CUdeviceptr srcDevice, size_t ByteCount, CUstream hStream) {
  return copy(number_of(dstHost), true, srcDevice, false, ByteCount, hStream, Form::kAsynchronous);
}
CUresult cuMemcpyDtoD_v2(CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount) {
  return copy(dstDevice, false, srcDevice, false, ByteCount, nullptr, Form::kSynchronous);
}
CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount, CUstream hStream) {
  return copy(dstDevice, false, srcDevice, false, ByteCount, hStream, Form::kAsynchronous);
}

// Addresses say which device they belong to; the contexts add nothing.
CUresult cuMemcpyPeer(CUdeviceptr dstDevice, CUcontext, CUdeviceptr srcDevice, CUcontext, size_t ByteCount) {
  return copy(dstDevice, false, srcDevice, false, ByteCount, nullptr, Form::kSynchronous);
}
CUresult cuMemcpyPeerAsync(CUdeviceptr dstDevice, CUcontext, CUdeviceptr srcDevice, CUcontext, size_t ByteCount,
                           CUstream hStream) {
  return copy(dstDevice, false, srcDevice, false, ByteCount, hStream, Form::kAsynchronous);
}

CUresult cuMemcpy2D_v2(const CUDA_MEMCPY2D *pCopy) {
  return copy_2d(pCopy, nullptr, Form::kSynchronous);
}
CUresult cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D *pCopy) {
  return copy_2d(pCopy, nullptr, Form::kSynchronous);
}
CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D *pCopy, CUstream hStream) {
  return copy_2d(pCopy, hStream, Form::kAsynchronous);
}

}  // namespace simcuda
