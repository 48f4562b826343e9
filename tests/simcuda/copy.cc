// Copies move real bytes, in stream order. Synchronisation follows "API synchronization behavior" of the CUDA manuals:
// a copy between devices waits only where SYNC_MEMOPS is set; a synchronous copy that involves the host waits; an
// asynchronous copy from pageable memory has read the source when it returns. Layer: copy_side.h. Threads: any.
#include <algorithm>
#include <cstring>
#include <vector>

#include "implemented.h"
#include "tests/simcuda/capture.h"
#include "tests/simcuda/copy_side.h"
#include "tests/simcuda/driver.h"

namespace simcuda {
namespace {

constexpr std::size_t kStagedBytes = 64 * 1024;  // an asynchronous copy stages a pageable source up to this size

std::uint64_t number_of(const void *pointer) {
  return reinterpret_cast<std::uintptr_t>(pointer);
}

CUresult copy(std::uint64_t to, bool to_any, std::uint64_t from, bool from_any, std::size_t bytes, CUstream stream,
              Form form) {
  Lock lock(driver().mutex);
  Context *context = nullptr;
  if (const CUresult error = current(lock, &context); error != CUDA_SUCCESS) return error;
  if (bytes == 0) return CUDA_SUCCESS;
  std::shared_ptr<Stream> queue;
  if (const CUresult error = find_stream(lock, stream, &queue); error != CUDA_SUCCESS) return error;
  const Place target = place(*context, Use::kWrite, reach_of(*queue), to, to_any, bytes);
  const Place source = place(*context, Use::kRead, reach_of(*queue), from, from_any, bytes);
  if (target.kind == Place::Kind::kNowhere || source.kind == Place::Kind::kNowhere) return CUDA_ERROR_INVALID_VALUE;
  if (queue->capture == nullptr && form == Form::kAsynchronous && source.kind == Place::Kind::kPageable &&
      target.kind != Place::Kind::kPageable && bytes <= kStagedBytes) {
    auto staged = std::make_shared<std::vector<std::byte>>(source.bytes, source.bytes + bytes);
    return run(lock, queue, form, Until::kQueued, {CU_GRAPH_NODE_TYPE_MEMCPY, [target, staged] {
                                                     std::memcpy(target.bytes, staged->data(), staged->size());
                                                   }});
  }
  return run(lock, queue, form, until(form, target, source),
             {CU_GRAPH_NODE_TYPE_MEMCPY, [=] { std::memmove(target.bytes, source.bytes, bytes); }});
}

CUresult copy_2d(const CUDA_MEMCPY2D *pCopy, CUstream stream, Form form) {
  Lock lock(driver().mutex);
  Context *context = nullptr;
  if (const CUresult error = current(lock, &context); error != CUDA_SUCCESS) return error;
  if (pCopy == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUDA_MEMCPY2D request = *pCopy;
  if (request.WidthInBytes == 0 || request.Height == 0) return CUDA_SUCCESS;
  const Side from{request.srcMemoryType,
                  request.srcHost,
                  request.srcDevice,
                  request.srcArray,
                  request.srcXInBytes,
                  request.srcY,
                  0,
                  request.srcPitch,
                  0};
  const Side to{request.dstMemoryType,
                request.dstHost,
                request.dstDevice,
                request.dstArray,
                request.dstXInBytes,
                request.dstY,
                0,
                request.dstPitch,
                0};
  return copy_box(lock, *context, to, from, {request.WidthInBytes, request.Height, 1}, stream, form);
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

// An address identifies its device; the context arguments add nothing.
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
