// Describes the memory that copies, fills and graphs use, as far as the arguments of their calls show it.
// Layer: hooks. Threads: any.
#pragma once

#include "hooks/before_work.h"

namespace ration::hooks {

using Work = policy::DeviceReach::Work;

// Without a stream, the work runs in the current context's default stream.
template <class... Address>
inline Work touching(CUstream stream, Address... addresses) {
  return {.stream = stream, .addresses = {addresses...}};
}
inline Work between(CUstream stream, CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context) {
  return {.stream = stream, .addresses = {to, from}, .parties = {to_context, from_context}};
}
inline Work anywhere(CUstream stream) {
  return {.stream = stream, .anywhere = true};
}

// The address at which the source or the destination of a copy begins; 0 if it is an array or known to be host memory.
inline CUdeviceptr beginning(CUmemorytype type, CUdeviceptr device, std::size_t offset) {
  return type == CU_MEMORYTYPE_DEVICE || type == CU_MEMORYTYPE_UNIFIED ? device + offset : 0;
}
inline Work boxed(CUstream stream, const CUDA_MEMCPY2D *box) {
  if (box == nullptr) {
    return {};
  }
  return touching(stream, beginning(box->dstMemoryType, box->dstDevice, box->dstY * box->dstPitch + box->dstXInBytes),
                  beginning(box->srcMemoryType, box->srcDevice, box->srcY * box->srcPitch + box->srcXInBytes));
}
template <class Box>
CUdeviceptr target_of(const Box &box) {
  return beginning(box.dstMemoryType, box.dstDevice,
                   (box.dstZ * box.dstHeight + box.dstY) * box.dstPitch + box.dstXInBytes);
}
template <class Box>
CUdeviceptr source_of(const Box &box) {
  return beginning(box.srcMemoryType, box.srcDevice,
                   (box.srcZ * box.srcHeight + box.srcY) * box.srcPitch + box.srcXInBytes);
}
inline Work boxed(CUstream stream, const CUDA_MEMCPY3D *box) {
  return box != nullptr ? touching(stream, target_of(*box), source_of(*box)) : Work{};
}
inline Work boxed(CUstream stream, const CUDA_MEMCPY3D_PEER *box) {
  return box != nullptr ? between(stream, target_of(*box), box->dstContext, source_of(*box), box->srcContext) : Work{};
}

}  // namespace ration::hooks
