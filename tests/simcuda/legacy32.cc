// The 32-bit exports of CUDA 2.0: their addresses fit 32 bits, and a larger number is reported as the largest that
// fits.
// Layer: driver.h, array.h. Threads: any.
#include <algorithm>
#include <climits>

#include "implemented.h"
#include "tests/simcuda/array.h"
#include "tests/simcuda/capture.h"

namespace simcuda {
namespace {

unsigned saturate32(std::uint64_t value) {
  return static_cast<unsigned>(std::min<std::uint64_t>(value, UINT_MAX));
}

CUresult allocate_legacy32(std::uint64_t bytes, CUdeviceptr_v1 *dptr) {
  if (dptr != nullptr) *dptr = 0;  // as cuMemAlloc_v2; not asked
  Lock lock(driver().mutex);
  Context *context = nullptr;
  if (const CUresult error = current(lock, &context); error != CUDA_SUCCESS) return error;
  if (const CUresult error = may_act_unseen(); error != CUDA_SUCCESS) return error;
  if (dptr == nullptr || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  std::uint64_t address = 0;
  if (const CUresult error = allocate(*context, bytes, &address, true); error != CUDA_SUCCESS) return error;
  *dptr = static_cast<CUdeviceptr_v1>(address);
  return CUDA_SUCCESS;
}

}  // namespace

CUresult cuDeviceTotalMem(unsigned int *bytes, CUdevice dev) {
  std::size_t all = 0;
  const CUresult error = simcuda::cuDeviceTotalMem_v2(bytes == nullptr ? nullptr : &all, dev);
  if (error == CUDA_SUCCESS) *bytes = saturate32(all);
  return error;
}

CUresult cuMemGetInfo(unsigned int *free, unsigned int *total) {
  std::size_t all_free = 0, all = 0;
  if (const CUresult error = simcuda::cuMemGetInfo_v2(&all_free, &all); error != CUDA_SUCCESS) return error;
  if (free != nullptr) *free = saturate32(all_free);
  if (total != nullptr) *total = saturate32(all);
  return CUDA_SUCCESS;
}

CUresult cuMemAlloc(CUdeviceptr_v1 *dptr, unsigned int bytesize) {
  return allocate_legacy32(bytesize, dptr);
}

CUresult cuMemAllocPitch(CUdeviceptr_v1 *dptr, unsigned int *pPitch, unsigned int WidthInBytes, unsigned int Height,
                         unsigned int ElementSizeBytes) {
  if (ElementSizeBytes != 4 && ElementSizeBytes != 8 && ElementSizeBytes != 16) return CUDA_ERROR_INVALID_VALUE;
  const std::uint64_t pitch = (std::uint64_t{WidthInBytes} + kUnitBytes - 1) / kUnitBytes * kUnitBytes;
  if (pitch > UINT_MAX) return CUDA_ERROR_OUT_OF_MEMORY;
  if (pPitch != nullptr && dptr != nullptr) *pPitch = static_cast<unsigned>(pitch);
  return allocate_legacy32(pitch * Height, pPitch == nullptr ? nullptr : dptr);
}

CUresult cuMemFree(CUdeviceptr_v1 dptr) {
  return simcuda::cuMemFree_v2(dptr);
}

CUresult cuMemGetAddressRange(CUdeviceptr_v1 *pbase, unsigned int *psize, CUdeviceptr_v1 dptr) {
  CUdeviceptr base = 0;
  std::size_t size = 0;
  if (const CUresult error = simcuda::cuMemGetAddressRange_v2(&base, &size, dptr); error != CUDA_SUCCESS) return error;
  if (pbase != nullptr) *pbase = static_cast<CUdeviceptr_v1>(base);
  if (psize != nullptr) *psize = saturate32(size);
  return CUDA_SUCCESS;
}

CUresult cuMemAllocHost(void **pp, unsigned int bytesize) {
  return simcuda::cuMemAllocHost_v2(pp, bytesize);
}

CUresult cuArrayCreate(CUarray *pHandle, const CUDA_ARRAY_DESCRIPTOR_v1 *pAllocateArray) {
  if (pAllocateArray == nullptr) return simcuda::cuArray3DCreate_v2(pHandle, nullptr);
  const CUDA_ARRAY_DESCRIPTOR wide = {pAllocateArray->Width, pAllocateArray->Height, pAllocateArray->Format,
                                      pAllocateArray->NumChannels};
  return simcuda::cuArrayCreate_v2(pHandle, &wide);
}

CUresult cuArray3DCreate(CUarray *pHandle, const CUDA_ARRAY3D_DESCRIPTOR_v1 *pAllocateArray) {
  if (pAllocateArray == nullptr) return simcuda::cuArray3DCreate_v2(pHandle, nullptr);
  const CUDA_ARRAY3D_DESCRIPTOR wide = {pAllocateArray->Width,  pAllocateArray->Height,      pAllocateArray->Depth,
                                        pAllocateArray->Format, pAllocateArray->NumChannels, pAllocateArray->Flags};
  return simcuda::cuArray3DCreate_v2(pHandle, &wide);
}

CUresult cuArrayGetDescriptor(CUDA_ARRAY_DESCRIPTOR_v1 *pArrayDescriptor, CUarray hArray) {
  CUDA_ARRAY_DESCRIPTOR wide = {};
  const CUresult error = simcuda::cuArrayGetDescriptor_v2(pArrayDescriptor == nullptr ? nullptr : &wide, hArray);
  if (error != CUDA_SUCCESS) return error;
  *pArrayDescriptor = {saturate32(wide.Width), saturate32(wide.Height), wide.Format, wide.NumChannels};
  return CUDA_SUCCESS;
}

CUresult cuArray3DGetDescriptor(CUDA_ARRAY3D_DESCRIPTOR_v1 *pArrayDescriptor, CUarray hArray) {
  CUDA_ARRAY3D_DESCRIPTOR wide = {};
  const CUresult error = simcuda::cuArray3DGetDescriptor_v2(pArrayDescriptor == nullptr ? nullptr : &wide, hArray);
  if (error != CUDA_SUCCESS) return error;
  *pArrayDescriptor = {saturate32(wide.Width), saturate32(wide.Height),
                       saturate32(wide.Depth), wide.Format,
                       wide.NumChannels,       wide.Flags};
  return CUDA_SUCCESS;
}

}  // namespace simcuda
