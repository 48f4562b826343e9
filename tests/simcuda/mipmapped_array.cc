// Mipmapped arrays. Layer: array.h. Threads: any.
#include <algorithm>

#include "implemented.h"
#include "tests/simcuda/array.h"
#include "tests/simcuda/capture.h"

namespace simcuda {

ArrayMemory *find_mipmapped_array(CUmipmappedArray handle) {
  const auto found = driver().array_memory.find(handle);
  return found == driver().array_memory.end() || !found->second->mipmapped ? nullptr : found->second.get();
}

CUresult cuMipmappedArrayCreate(CUmipmappedArray *pHandle, const CUDA_ARRAY3D_DESCRIPTOR *pMipmappedArrayDesc,
                                unsigned int numMipmapLevels) {
  Lock lock(driver().mutex);
  Context *context = nullptr;
  if (const CUresult error = current(lock, &context); error != CUDA_SUCCESS) return error;
  if (const CUresult error = may_act_unseen(); error != CUDA_SUCCESS) return error;
  if (pHandle == nullptr || pMipmappedArrayDesc == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const unsigned levels = std::clamp(numMipmapLevels, 1u, std::max(most_levels(*pMipmappedArrayDesc), 1u));
  ArrayMemory *memory = nullptr;
  const CUresult error = create_array_memory(*context, *pMipmappedArrayDesc, true, levels, &memory);
  if (error == CUDA_SUCCESS) *pHandle = reinterpret_cast<CUmipmappedArray>(memory);
  return error;
}

CUresult cuMipmappedArrayGetLevel(CUarray *pLevelArray, CUmipmappedArray hMipmappedArray, unsigned int level) {
  Lock lock(driver().mutex);
  Context *context = nullptr;
  if (const CUresult error = current(lock, &context); error != CUDA_SUCCESS) return error;
  if (pLevelArray == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const ArrayMemory *memory = find_mipmapped_array(hMipmappedArray);
  if (memory == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (level >= memory->parts.size()) return CUDA_ERROR_INVALID_VALUE;
  *pLevelArray = reinterpret_cast<CUarray>(memory->parts[level].get());
  return CUDA_SUCCESS;
}

CUresult cuMipmappedArrayDestroy(CUmipmappedArray hMipmappedArray) {
  Lock lock(driver().mutex);
  Context *context = nullptr;
  if (const CUresult error = current(lock, &context); error != CUDA_SUCCESS) return error;
  if (const CUresult error = may_act_unseen(); error != CUDA_SUCCESS) return error;
  ArrayMemory *memory = find_mipmapped_array(hMipmappedArray);
  if (memory == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  destroy_array_memory(lock, *memory);
  return CUDA_SUCCESS;
}

}  // namespace simcuda
