// Copies to and from arrays, and of boxes. Copies between an array and memory use the array's rows: rows of blocks
// where the format has blocks. Layer: copy_side.h. Threads: any.
#include "implemented.h"
#include "tests/simcuda/array.h"
#include "tests/simcuda/copy_side.h"

namespace simcuda {
namespace {

Side host(const void *pointer) {
  return {.type = CU_MEMORYTYPE_HOST, .host = pointer};
}
Side device(CUdeviceptr pointer) {
  return {.type = CU_MEMORYTYPE_DEVICE, .device = pointer};
}
Side array(CUarray handle, std::size_t offset) {
  return {.type = CU_MEMORYTYPE_ARRAY, .array = handle, .x = offset};
}

// These calls accept only 1D arrays (cuda.h).
CUresult may_be_a_row(const Side &side) {
  if (side.type != CU_MEMORYTYPE_ARRAY) return CUDA_SUCCESS;
  const Array *found = find_array(side.array);
  if (found == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  return found->rows == 1 && found->slices == 1 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult copy_row(const Side &to, const Side &from, std::size_t bytes, CUstream stream, Form form) {
  Lock lock(driver().mutex);
  Context *context = nullptr;
  if (const CUresult error = current(lock, &context); error != CUDA_SUCCESS) return error;
  if (const CUresult error = may_be_a_row(to); error != CUDA_SUCCESS) return error;
  if (const CUresult error = may_be_a_row(from); error != CUDA_SUCCESS) return error;
  return bytes == 0 ? CUDA_SUCCESS : copy_box(lock, *context, to, from, {bytes, 1, 1}, stream, form);
}

CUresult copy_3d(const CUDA_MEMCPY3D *pCopy, CUstream stream, Form form) {
  Lock lock(driver().mutex);
  std::shared_ptr<Stream> queue;
  if (const CUresult error = find_stream(lock, stream, &queue); error != CUDA_SUCCESS) return error;
  if (pCopy == nullptr) return CUDA_ERROR_INVALID_VALUE;
  BoxCopy copy;
  const CUresult error = plan_3d(*current_or_null(), reach_of(*queue), *pCopy, form, &copy);
  if (error != CUDA_SUCCESS || !copy.work.run) return error;
  return run(lock, queue, form, copy.until, std::move(copy.work));
}

}  // namespace

CUresult plan_3d(const Context &context, Reach reach, const CUDA_MEMCPY3D &request, Form form, BoxCopy *copy) {
  // H100, H200, driver 580.159: a srcLOD is ignored.
  if (request.dstLOD != 0 || request.reserved0 != nullptr || request.reserved1 != nullptr) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (request.WidthInBytes == 0 || request.Height == 0 || request.Depth == 0) return CUDA_SUCCESS;
  const Side from{request.srcMemoryType, request.srcHost, request.srcDevice, request.srcArray, request.srcXInBytes,
                  request.srcY,          request.srcZ,    request.srcPitch,  request.srcHeight};
  const Side to{request.dstMemoryType, request.dstHost, request.dstDevice, request.dstArray, request.dstXInBytes,
                request.dstY,          request.dstZ,    request.dstPitch,  request.dstHeight};
  return plan_box(context, reach, to, from, {request.WidthInBytes, request.Height, request.Depth}, form, copy);
}

CUresult cuMemcpyHtoA_v2(CUarray dstArray, size_t dstOffset, const void *srcHost, size_t ByteCount) {
  return copy_row(array(dstArray, dstOffset), host(srcHost), ByteCount, nullptr, Form::kSynchronous);
}
CUresult cuMemcpyHtoAAsync_v2(CUarray dstArray, size_t dstOffset, const void *srcHost, size_t ByteCount,
                              CUstream hStream) {
  return copy_row(array(dstArray, dstOffset), host(srcHost), ByteCount, hStream, Form::kAsynchronous);
}
CUresult cuMemcpyAtoH_v2(void *dstHost, CUarray srcArray, size_t srcOffset, size_t ByteCount) {
  return copy_row(host(dstHost), array(srcArray, srcOffset), ByteCount, nullptr, Form::kSynchronous);
}
CUresult cuMemcpyAtoHAsync_v2(void *dstHost, CUarray srcArray, size_t srcOffset, size_t ByteCount, CUstream hStream) {
  return copy_row(host(dstHost), array(srcArray, srcOffset), ByteCount, hStream, Form::kAsynchronous);
}
CUresult cuMemcpyDtoA_v2(CUarray dstArray, size_t dstOffset, CUdeviceptr srcDevice, size_t ByteCount) {
  return copy_row(array(dstArray, dstOffset), device(srcDevice), ByteCount, nullptr, Form::kSynchronous);
}
CUresult cuMemcpyAtoD_v2(CUdeviceptr dstDevice, CUarray srcArray, size_t srcOffset, size_t ByteCount) {
  return copy_row(device(dstDevice), array(srcArray, srcOffset), ByteCount, nullptr, Form::kSynchronous);
}
CUresult cuMemcpyAtoA_v2(CUarray dstArray, size_t dstOffset, CUarray srcArray, size_t srcOffset, size_t ByteCount) {
  return copy_row(array(dstArray, dstOffset), array(srcArray, srcOffset), ByteCount, nullptr, Form::kSynchronous);
}
CUresult cuMemcpy3D_v2(const CUDA_MEMCPY3D *pCopy) {
  return copy_3d(pCopy, nullptr, Form::kSynchronous);
}
CUresult cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D *pCopy, CUstream hStream) {
  return copy_3d(pCopy, hStream, Form::kAsynchronous);
}

}  // namespace simcuda
