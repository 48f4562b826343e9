// Shared by the tests of arrays whose memory is mapped later: tile pools, and operations on an array's tiles.
#pragma once
#include "tests/simcuda/conformance/shape.h"
#include "tests/simcuda/conformance/vmm.h"

namespace simcuda::conformance {

inline constexpr std::size_t kTile = 64 * 1024;  // on every device that supports sparse arrays

inline bool has_sparse_arrays() {
  return supports(CU_DEVICE_ATTRIBUTE_SPARSE_CUDA_ARRAY_SUPPORTED);
}

inline CUmemGenericAllocationHandle tile_pool(std::size_t bytes = kGranule, int device = 0) {
  CUmemAllocationProp properties = on_device(device);
  properties.allocFlags.usage = CU_MEM_CREATE_USAGE_TILE_POOL;
  return physical(bytes, properties);
}

inline CUDA_ARRAY_SPARSE_PROPERTIES cut_of(CUarray array) {
  CUDA_ARRAY_SPARSE_PROPERTIES reported = {};
  REQUIRE(cuArrayGetSparseProperties(&reported, array) == CUDA_SUCCESS);
  return reported;
}
inline CUDA_ARRAY_SPARSE_PROPERTIES cut_of(CUmipmappedArray array) {
  CUDA_ARRAY_SPARSE_PROPERTIES reported = {};
  REQUIRE(cuMipmappedArrayGetSparseProperties(&reported, array) == CUDA_SUCCESS);
  return reported;
}

// Four by four tiles if a tile has the standard size of 128 by 128 floats.
inline constexpr unsigned kSide = 512;
inline CUarray sparse_array() {
  return new_array(shape(kSide, kSide, 0, CUDA_ARRAY3D_SPARSE));
}

// An operation on a whole level of 512 by 512; the caller may change it.
inline CUarrayMapInfo operation(CUmemOperationType type) {
  CUarrayMapInfo request = {};
  request.subresourceType = CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_SPARSE_LEVEL;
  request.subresource.sparseLevel.extentWidth = request.subresource.sparseLevel.extentHeight = kSide;
  request.subresource.sparseLevel.extentDepth = 1;
  request.memOperationType = type;
  request.memHandleType = CU_MEM_HANDLE_TYPE_GENERIC;
  request.deviceBitMask = 1;
  return request;
}

inline CUarrayMapInfo unmapping(CUarray array) {
  CUarrayMapInfo request = operation(CU_MEM_OPERATION_TYPE_UNMAP);
  request.resourceType = CU_RESOURCE_TYPE_ARRAY;
  request.resource.array = array;
  return request;
}
inline CUarrayMapInfo unmapping(CUmipmappedArray array) {
  CUarrayMapInfo request = operation(CU_MEM_OPERATION_TYPE_UNMAP);
  request.resourceType = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY;
  request.resource.mipmap = array;
  return request;
}

template <class Handle>
CUarrayMapInfo mapping(Handle array, CUmemGenericAllocationHandle pool, std::size_t offset = 0) {
  CUarrayMapInfo request = unmapping(array);
  request.memOperationType = CU_MEM_OPERATION_TYPE_MAP;
  request.memHandle.memHandle = pool;
  request.offset = offset;
  return request;
}

// The same for some tiles only.
inline CUarrayMapInfo of_tiles(CUarrayMapInfo request, const CUDA_ARRAY_SPARSE_PROPERTIES &cut, unsigned x, unsigned y,
                               unsigned across = 1, unsigned down = 1) {
  auto &level = request.subresource.sparseLevel;
  level.offsetX = x * cut.tileExtent.width;
  level.offsetY = y * cut.tileExtent.height;
  level.extentWidth = across * cut.tileExtent.width;
  level.extentHeight = down * cut.tileExtent.height;
  return request;
}

// The same for the tail.
inline CUarrayMapInfo of_tail(CUarrayMapInfo request, std::size_t offset, std::size_t bytes) {
  request.subresourceType = CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_MIPTAIL;
  request.subresource.miptail = {0, offset, bytes};
  return request;
}

// Performs one operation and waits for it.
inline CUresult change(CUarrayMapInfo request, CUstream stream = nullptr) {
  const CUresult result = cuMemMapArrayAsync(&request, 1, stream);
  REQUIRE(cuStreamSynchronize(stream) == CUDA_SUCCESS);
  return result;
}

}  // namespace simcuda::conformance
