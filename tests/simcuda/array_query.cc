// Memory requirements of arrays, and the tile layout of sparse ones. Layer: array_tiles.h. Threads: any.
#include "implemented.h"
#include "tests/simcuda/array_tiles.h"

namespace simcuda {
namespace {

CUresult tell_sparse(const ArrayMemory &memory, CUDA_ARRAY_SPARSE_PROPERTIES *properties) {
  if ((memory.shape.Flags & CUDA_ARRAY3D_SPARSE) == 0) return CUDA_ERROR_INVALID_VALUE;
  const Tile tile = tile_of(memory.shape);
  CUDA_ARRAY_SPARSE_PROPERTIES reported = {};
  reported.tileExtent = {tile.width, tile.height, tile.depth};
  reported.miptailSize = tail_tiles(memory) * kTileBytes;
  if (reported.miptailSize != 0) reported.flags = CU_ARRAY_SPARSE_PROPERTIES_SINGLE_MIPTAIL;
  if (memory.mipmapped) reported.miptailFirstLevel = first_tail_level(memory);
  *properties = reported;
  return CUDA_SUCCESS;
}

CUresult tell_needs(const ArrayMemory &memory, CUDA_ARRAY_MEMORY_REQUIREMENTS *requirements) {
  if ((memory.shape.Flags & CUDA_ARRAY3D_DEFERRED_MAPPING) == 0) return CUDA_ERROR_INVALID_VALUE;
  *requirements = {};
  requirements->size = memory.needed;
  requirements->alignment = kTileBytes;
  return CUDA_SUCCESS;
}

// The array that owns its memory, or the error.
CUresult owner_of(Lock &lock, CUarray handle, const ArrayMemory **memory) {
  Context *context = nullptr;
  if (const CUresult error = current(lock, &context); error != CUDA_SUCCESS) return error;
  const Array *array = find_array(handle);
  if (array == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (array->view) return CUDA_ERROR_INVALID_VALUE;
  *memory = array->memory;
  return CUDA_SUCCESS;
}

CUresult owner_of(Lock &lock, CUmipmappedArray handle, const ArrayMemory **memory) {
  Context *context = nullptr;
  if (const CUresult error = current(lock, &context); error != CUDA_SUCCESS) return error;
  *memory = find_mipmapped_array(handle);
  return *memory == nullptr ? CUDA_ERROR_INVALID_HANDLE : CUDA_SUCCESS;
}

template <class Handle>
CUresult sparse_of(Handle handle, CUDA_ARRAY_SPARSE_PROPERTIES *properties) {
  Lock lock(driver().mutex);
  const ArrayMemory *memory = nullptr;
  if (const CUresult error = owner_of(lock, handle, &memory); error != CUDA_SUCCESS) return error;
  return properties == nullptr ? CUDA_ERROR_INVALID_VALUE : tell_sparse(*memory, properties);
}

template <class Handle>
CUresult needs_of(Handle handle, CUdevice ordinal, CUDA_ARRAY_MEMORY_REQUIREMENTS *requirements) {
  Lock lock(driver().mutex);
  const ArrayMemory *memory = nullptr;
  Device *device = nullptr;
  if (const CUresult error = owner_of(lock, handle, &memory); error != CUDA_SUCCESS) return error;
  if (const CUresult error = device_of(ordinal, &device); error != CUDA_SUCCESS) return error;
  return requirements == nullptr ? CUDA_ERROR_INVALID_VALUE : tell_needs(*memory, requirements);
}

}  // namespace

CUresult cuArrayGetSparseProperties(CUDA_ARRAY_SPARSE_PROPERTIES *sparseProperties, CUarray array) {
  return sparse_of(array, sparseProperties);
}
CUresult cuMipmappedArrayGetSparseProperties(CUDA_ARRAY_SPARSE_PROPERTIES *sparseProperties, CUmipmappedArray mipmap) {
  return sparse_of(mipmap, sparseProperties);
}
CUresult cuArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS *memoryRequirements, CUarray array,
                                      CUdevice device) {
  return needs_of(array, device, memoryRequirements);
}
CUresult cuMipmappedArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS *memoryRequirements,
                                               CUmipmappedArray mipmap, CUdevice device) {
  return needs_of(mipmap, device, memoryRequirements);
}

}  // namespace simcuda
