// Mipmapped arrays: levels of half the previous size each, all in one allocation.
#include "tests/simcuda/conformance/fixture.h"
#include "tests/simcuda/conformance/shape.h"

namespace simcuda::conformance {
namespace {

constexpr std::size_t kKiB = 1024;

CUDA_ARRAY3D_DESCRIPTOR level_of(CUmipmappedArray array, unsigned level) {
  CUarray at = nullptr;
  CUDA_ARRAY3D_DESCRIPTOR reported = {};
  REQUIRE(cuMipmappedArrayGetLevel(&at, array, level) == CUDA_SUCCESS);
  REQUIRE(cuArray3DGetDescriptor(&reported, at) == CUDA_SUCCESS);
  return reported;
}

TEST_CASE("each level has half the size, and the largest side limits their number") {
  const CurrentContext context;
  const CUmipmappedArray array = new_mipmapped(shape(64, 16), 99);
  CHECK((level_of(array, 0).Width == 64 && level_of(array, 0).Height == 16));
  CHECK((level_of(array, 3).Width == 8 && level_of(array, 3).Height == 2));
  CHECK((level_of(array, 6).Width == 1 && level_of(array, 6).Height == 1));
  CUarray none = nullptr;
  CHECK(cuMipmappedArrayGetLevel(&none, array, 7) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMipmappedArrayGetLevel(nullptr, array, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMipmappedArrayDestroy(array) == CUDA_SUCCESS);
  const CUmipmappedArray one = new_mipmapped(shape(64, 16), 0);
  CHECK(cuMipmappedArrayGetLevel(&none, one, 1) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMipmappedArrayDestroy(one) == CUDA_SUCCESS);
}

TEST_CASE("layers do not halve, depth does") {
  const CurrentContext context;
  CHECK(level_of(new_mipmapped(shape(64, 64, 8), 9), 2).Depth == 2);
  CHECK(level_of(new_mipmapped(shape(64, 64, 8, CUDA_ARRAY3D_LAYERED), 9), 2).Depth == 8);
  CHECK(level_of(new_mipmapped(shape(64, 64, 6, CUDA_ARRAY3D_CUBEMAP), 9), 2).Depth == 6);
}

TEST_CASE("a mipmapped array costs the tiles of all its levels, and destroys its levels with it") {
  if (!simulator()) return;
  const CurrentContext context;
  const std::size_t before = free_bytes();
  const CUmipmappedArray array = new_mipmapped(shape(256, 256, 4, CUDA_ARRAY3D_LAYERED), 9);
  // 256², 128² … 16² in full; 8², 4², 2² and 1² a tile of 512 bytes each: 1.37 MiB in four layers.
  std::size_t tiles = 0;
  for (std::size_t side = 256; side >= 16; side /= 2) tiles += side * side * 4;
  const std::size_t cost = (4 * (tiles + 4 * 512) + 64 * kKiB - 1) / (64 * kKiB) * (64 * kKiB);
  CHECK(before - free_bytes() == cost);
  simcuda_books books = {};
  REQUIRE(simulator().device_books(0, &books) == 0);
  CHECK((books.arrays == 1 && books.array_bytes == cost));
  CUDA_ARRAY_MEMORY_REQUIREMENTS needs = {};
  CHECK(cuMipmappedArrayGetMemoryRequirements(&needs, array, 0) == CUDA_ERROR_INVALID_VALUE);
  const CUmipmappedArray deferred =
      new_mipmapped(shape(256, 256, 4, CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_DEFERRED_MAPPING), 9);
  CHECK(before - free_bytes() == cost);
  REQUIRE(cuMipmappedArrayGetMemoryRequirements(&needs, deferred, 0) == CUDA_SUCCESS);
  CHECK((needs.size == cost && needs.alignment == 64 * kKiB));
  CHECK(cuMipmappedArrayDestroy(deferred) == CUDA_SUCCESS);
  CUarray level = nullptr;
  REQUIRE(cuMipmappedArrayGetLevel(&level, array, 1) == CUDA_SUCCESS);
  CHECK(cuArrayDestroy(level) != CUDA_SUCCESS);
  CHECK(before - free_bytes() == cost);
  REQUIRE(cuMipmappedArrayDestroy(array) == CUDA_SUCCESS);
  CHECK(free_bytes() == before);
  CUDA_ARRAY3D_DESCRIPTOR reported = {};
  CHECK(cuArray3DGetDescriptor(&reported, level) == CUDA_ERROR_INVALID_HANDLE);
  CHECK(cuMipmappedArrayDestroy(array) == CUDA_ERROR_INVALID_HANDLE);
}

TEST_CASE("a sparse mipmapped array costs nothing and has a tail of small levels") {
  if (!simulator()) return;
  const CurrentContext context;
  const std::size_t before = free_bytes();
  const CUmipmappedArray array = new_mipmapped(shape(1024, 1024, 0, CUDA_ARRAY3D_SPARSE), 11);
  CHECK(free_bytes() == before);
  CUDA_ARRAY_SPARSE_PROPERTIES sparse = {};
  REQUIRE(cuMipmappedArrayGetSparseProperties(&sparse, array) == CUDA_SUCCESS);
  CHECK(sparse.miptailFirstLevel == 4);  // 64 by 64, where a tile is 128 by 128
  CHECK(sparse.miptailSize == 64 * kKiB);
  CUarray level = nullptr;
  REQUIRE(cuMipmappedArrayGetLevel(&level, array, 0) == CUDA_SUCCESS);
  CHECK(cuArrayGetSparseProperties(&sparse, level) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMipmappedArrayGetSparseProperties(&sparse, new_mipmapped(shape(16, 16), 2)) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("an invalid mipmapped descriptor is refused") {
  const CurrentContext context;
  CUmipmappedArray untouched = reinterpret_cast<CUmipmappedArray>(&untouched);
  const CUDA_ARRAY3D_DESCRIPTOR empty = shape(0, 16), right = shape(16, 16);
  CUDA_ARRAY3D_DESCRIPTOR planar = shape(64, 64);
  planar.Format = CU_AD_FORMAT_NV12;
  planar.NumChannels = 3;
  CHECK(cuMipmappedArrayCreate(&untouched, &empty, 2) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMipmappedArrayCreate(&untouched, &planar, 2) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMipmappedArrayCreate(&untouched, nullptr, 2) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMipmappedArrayCreate(nullptr, &right, 2) == CUDA_ERROR_INVALID_VALUE);
  CHECK(untouched == reinterpret_cast<CUmipmappedArray>(&untouched));
}

}  // namespace
}  // namespace simcuda::conformance
