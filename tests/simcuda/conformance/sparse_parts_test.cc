// The parts of an array that cuMemMapArrayAsync accepts: tiles of a level and a layer, and parts of the tail.
#include "tests/simcuda/conformance/sparse.h"

namespace simcuda::conformance {
namespace {

constexpr CUresult kRefused = CUDA_ERROR_INVALID_VALUE;

TEST_CASE("offsets and extents must be those of tiles inside the level") {
  const CurrentContext context;
  if (!has_sparse_arrays()) return;
  const CUarray array = sparse_array();
  const CUDA_ARRAY_SPARSE_PROPERTIES cut = cut_of(array);
  const unsigned tiles = kSide / cut.tileExtent.width;
  const CUmemGenericAllocationHandle pool = tile_pool();
  const auto with = [&](auto set) {
    CUarrayMapInfo request = of_tiles(mapping(array, pool), cut, 0, 0);
    set(request.subresource.sparseLevel);
    return change(request);
  };
  CHECK(with([](auto &) {}) == CUDA_SUCCESS);
  CHECK(with([](auto &at) { at.offsetX = at.extentWidth /= 2; }) == kRefused);
  CHECK(with([](auto &at) { at.offsetY = at.extentHeight /= 2; }) == kRefused);
  CHECK(with([](auto &at) { at.offsetZ = 1; }) == kRefused);
  CHECK(with([](auto &at) { at.extentWidth -= 1; }) == kRefused);
  CHECK(with([](auto &at) { at.extentHeight += 1; }) == kRefused);
  CHECK(with([](auto &at) { at.extentDepth = 2; }) == kRefused);
  CHECK(with([](auto &at) { at.level = 1; }) == kRefused);
  CHECK(with([](auto &at) { at.layer = 1; }) == kRefused);
  CHECK(with([&](auto &at) { at.offsetX = tiles * cut.tileExtent.width; }) == kRefused);
  CHECK(with([&](auto &at) { at.extentWidth = (tiles + 1) * cut.tileExtent.width; }) == kRefused);
  if (simulator()) {  // cuda.h does not specify an empty region
    CHECK(with([](auto &at) { at.extentWidth = 0; }) == kRefused);
    CHECK(with([](auto &at) { at.extentDepth = 0; }) == kRefused);
  }
  CHECK(cuMemRelease(pool) == CUDA_SUCCESS);
}

TEST_CASE("the last tile of a row may end at the level's edge, and takes a whole tile of memory") {
  const CurrentContext context;
  if (!has_sparse_arrays() || !simulator()) return;
  const CUarray array = new_array(shape(1000, 1000, 0, CUDA_ARRAY3D_SPARSE));  // eight tiles by eight of 128 by 128
  const CUmemGenericAllocationHandle pool = tile_pool(2 * kGranule);
  CUarrayMapInfo whole = mapping(array, pool);
  whole.subresource.sparseLevel.extentWidth = whole.subresource.sparseLevel.extentHeight = 1000;
  CHECK(change(whole) == CUDA_SUCCESS);
  whole.offset = kTile;  // leaves 63 tiles
  CHECK(change(whole) == kRefused);
  whole.subresource.sparseLevel.extentWidth = 7 * 128;
  CHECK(change(whole) == CUDA_SUCCESS);
  CHECK(cuMemRelease(pool) == CUDA_SUCCESS);
}

TEST_CASE("layers, levels and depth must exist in the array") {
  const CurrentContext context;
  if (!has_sparse_arrays() || !simulator()) return;
  const unsigned layers = CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_SPARSE;
  CUarrayMapInfo layer = unmapping(new_array(shape(kSide, kSide, 3, layers)));
  layer.subresource.sparseLevel.layer = 2;
  CHECK(change(layer) == CUDA_SUCCESS);
  layer.subresource.sparseLevel.layer = 3;
  CHECK(change(layer) == kRefused);
  CUarrayMapInfo deep = unmapping(new_array(shape(kSide, kSide, 40, CUDA_ARRAY3D_SPARSE)));  // tiles of 32 by 32 by 16
  auto &box = deep.subresource.sparseLevel;
  CHECK(change(deep) == kRefused);
  box.extentDepth = 40;
  CHECK(change(deep) == CUDA_SUCCESS);
  box.offsetZ = 16;
  CHECK(change(deep) == kRefused);
  box.extentDepth = 24;
  CHECK(change(deep) == CUDA_SUCCESS);
  box.layer = 1;
  CHECK(change(deep) == kRefused);
  const CUmipmappedArray array = new_mipmapped(shape(kSide, kSide, 0, CUDA_ARRAY3D_SPARSE), 10);
  const CUDA_ARRAY_SPARSE_PROPERTIES cut = cut_of(array);
  CUarrayMapInfo level = of_tiles(unmapping(array), cut, 0, 0);
  level.subresource.sparseLevel.level = cut.miptailFirstLevel - 1;
  CHECK(change(level) == CUDA_SUCCESS);
  level.subresource.sparseLevel.level = cut.miptailFirstLevel;
  CHECK(change(level) == kRefused);
  level.subresource.sparseLevel.extentWidth = level.subresource.sparseLevel.extentHeight = 64;  // all of it
  CHECK(change(level) == kRefused);
  level.subresource.sparseLevel.level = 99;
  CHECK(change(level) == kRefused);
}

TEST_CASE("a part of the tail consists of whole tiles") {
  const CurrentContext context;
  if (!has_sparse_arrays() || !simulator()) return;
  const CUmipmappedArray array = new_mipmapped(shape(256, 256, 20, CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_SPARSE), 9);
  const std::size_t tail = cut_of(array).miptailSize;
  REQUIRE(tail == 8 * kTile);  // twenty times 64 by 64 floats and the smaller levels
  CHECK(change(of_tail(unmapping(array), 0, tail)) == CUDA_SUCCESS);
  CHECK(change(of_tail(unmapping(array), 7 * kTile, kTile)) == CUDA_SUCCESS);
  CHECK(change(of_tail(unmapping(array), 8 * kTile, kTile)) == kRefused);
  CHECK(change(of_tail(unmapping(array), 7 * kTile, 2 * kTile)) == kRefused);
  CHECK(change(of_tail(unmapping(array), 1, kTile)) == kRefused);
  CHECK(change(of_tail(unmapping(array), 0, kTile + 1)) == kRefused);
  CHECK(change(of_tail(unmapping(array), 0, 0)) == kRefused);
  CUarrayMapInfo layer = of_tail(unmapping(array), 0, kTile);
  layer.subresource.miptail.layer = 1;
  CHECK(change(layer) == kRefused);
  CHECK(change(of_tail(unmapping(sparse_array()), 0, kTile)) == kRefused);  // it has no tail
}

TEST_CASE("each layer, slice and level, and the tail, has separate tiles", "[alone]") {
  const CurrentContext context;
  if (!has_sparse_arrays() || !simulator()) return;
  const std::size_t before = free_bytes();
  std::size_t parts = 0;
  const auto lies_on_its_own = [&](const CUarrayMapInfo &part) {
    CUarrayMapInfo request = part;
    request.memOperationType = CU_MEM_OPERATION_TYPE_MAP;
    request.memHandle.memHandle = tile_pool();
    REQUIRE(change(request) == CUDA_SUCCESS);
    REQUIRE(cuMemRelease(request.memHandle.memHandle) == CUDA_SUCCESS);
    ++parts;
    CHECK(before - free_bytes() == parts * kGranule);
  };
  const CUmipmappedArray layers = new_mipmapped(shape(256, 256, 2, CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_SPARSE), 9);
  for (const unsigned level : {0u, 1u}) {
    for (const unsigned layer : {0u, 1u}) {
      CUarrayMapInfo part = of_tiles(unmapping(layers), cut_of(layers), 0, 0);
      part.subresource.sparseLevel.level = level;
      part.subresource.sparseLevel.layer = layer;
      lies_on_its_own(part);
    }
  }
  lies_on_its_own(of_tail(unmapping(layers), 0, kTile));
  const CUarray deep = new_array(shape(64, 64, 32, CUDA_ARRAY3D_SPARSE));  // two tiles by two by two
  for (const unsigned slice : {0u, 1u}) {
    CUarrayMapInfo part = of_tiles(unmapping(deep), cut_of(deep), 0, 0, 2, 2);
    part.subresource.sparseLevel.offsetZ = slice * 16;
    part.subresource.sparseLevel.extentDepth = 16;
    lies_on_its_own(part);
  }
  CHECK(cuMipmappedArrayDestroy(layers) == CUDA_SUCCESS);
  CHECK(before - free_bytes() == 2 * kGranule);
  CHECK(cuArrayDestroy(deep) == CUDA_SUCCESS);
  CHECK(free_bytes() == before);
}

}  // namespace
}  // namespace simcuda::conformance
