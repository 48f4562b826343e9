// What an array needs, and how a sparse one is cut. A sparse tile is 64 KiB; its shapes are the standard ones of the
// graphics interfaces (Vulkan, "Standard Sparse Image Block Shapes"). Layer: array.h. Threads: any.
#include <algorithm>
#include <bit>

#include "implemented.h"
#include "tests/simcuda/array.h"

namespace simcuda {
namespace {

struct Tile {
  unsigned width, height, depth;
};

constexpr Tile kFlat[] = {{256, 256, 1}, {256, 128, 1}, {128, 128, 1}, {128, 64, 1}, {64, 64, 1}};
constexpr Tile kDeep[] = {{64, 32, 32}, {32, 32, 32}, {32, 32, 16}, {32, 16, 16}, {16, 16, 16}};

Tile tile_of(const CUDA_ARRAY3D_DESCRIPTOR &shape) {
  const Format &format = *find_format(shape.Format);
  const unsigned element = format.element_bytes * (format.channels == 0 ? shape.NumChannels : 1u);
  const bool deep = shape.Depth != 0 && (shape.Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP)) == 0;
  const auto row = static_cast<unsigned>(std::countr_zero(element));  // every element is a power of two
  const Tile tile = deep ? kDeep[row] : kFlat[row];
  return {tile.width * format.block, tile.height * format.block, tile.depth};
}

bool smaller(const CUDA_ARRAY3D_DESCRIPTOR &shape, const Tile &tile) {
  return shape.Width < tile.width || shape.Height < tile.height || std::max<std::size_t>(shape.Depth, 1) < tile.depth;
}

CUresult tell_sparse(const ArrayMemory &memory, CUDA_ARRAY_SPARSE_PROPERTIES *properties) {
  if ((memory.shape.Flags & CUDA_ARRAY3D_SPARSE) == 0) return CUDA_ERROR_INVALID_VALUE;
  const Tile tile = tile_of(memory.shape);
  CUDA_ARRAY_SPARSE_PROPERTIES told = {};
  told.tileExtent = {tile.width, tile.height, tile.depth};
  std::uint64_t tail = 0;
  for (const auto &part : memory.parts) {
    if (!smaller(part->shape, tile)) {
      ++told.miptailFirstLevel;
      continue;
    }
    tail += part->slice_bytes * part->slices;
    told.flags = CU_ARRAY_SPARSE_PROPERTIES_SINGLE_MIPTAIL;
  }
  told.miptailSize = (tail + kArrayGranuleBytes - 1) / kArrayGranuleBytes * kArrayGranuleBytes;
  if (!memory.mipmapped) told.miptailFirstLevel = 0;
  *properties = told;
  return CUDA_SUCCESS;
}

CUresult tell_needs(const ArrayMemory &memory, CUDA_ARRAY_MEMORY_REQUIREMENTS *requirements) {
  if ((memory.shape.Flags & CUDA_ARRAY3D_DEFERRED_MAPPING) == 0) return CUDA_ERROR_INVALID_VALUE;
  *requirements = {};
  requirements->size = memory.needed;
  requirements->alignment = kArrayGranuleBytes;
  return CUDA_SUCCESS;
}

// The array that owns its memory, or why there is none.
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
