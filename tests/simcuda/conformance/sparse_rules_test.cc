// What cuMemMapArrayAsync refuses: all of a list with one bad entry.
#include "tests/simcuda/conformance/capture.h"
#include "tests/simcuda/conformance/sparse.h"

namespace simcuda::conformance {
namespace {

constexpr CUresult kRefused = CUDA_ERROR_INVALID_VALUE;

TEST_CASE("a list without entries is refused") {
  const CurrentContext context;
  if (!has_sparse_arrays()) return;
  if (!simulator()) return;  // cuda.h has no word about it
  CUarrayMapInfo asked = unmapping(sparse_array());
  CHECK(cuMemMapArrayAsync(&asked, 1, nullptr) == CUDA_SUCCESS);
  CHECK(cuMemMapArrayAsync(&asked, 0, nullptr) == kRefused);
  CHECK(cuMemMapArrayAsync(nullptr, 1, nullptr) == kRefused);
}

TEST_CASE("a list with one bad entry changes nothing") {
  const CurrentContext context;
  if (!has_sparse_arrays() || !simulator()) return;
  const std::size_t before = free_bytes();
  const CUarray array = sparse_array();
  const CUmemGenericAllocationHandle pool = tile_pool();
  CUarrayMapInfo list[] = {mapping(array, pool), unmapping(array)};
  list[1].flags = 1;
  CHECK(cuMemMapArrayAsync(list, 2, nullptr) == kRefused);
  REQUIRE(cuStreamSynchronize(nullptr) == CUDA_SUCCESS);
  CHECK(cuMemRelease(pool) == CUDA_SUCCESS);
  CHECK(free_bytes() == before);
}

TEST_CASE("only whole arrays of two or three dimensions whose memory is mapped later can be mapped") {
  const CurrentContext context;
  if (!has_sparse_arrays()) return;
  const CUmemGenericAllocationHandle pool = tile_pool();
  const CUmipmappedArray levels = new_mipmapped(shape(kSide, kSide, 0, CUDA_ARRAY3D_SPARSE), 2);
  CUarray level = nullptr;
  REQUIRE(cuMipmappedArrayGetLevel(&level, levels, 0) == CUDA_SUCCESS);
  CHECK(change(mapping(level, pool)) == kRefused);
  CHECK(change(mapping(levels, pool)) == CUDA_SUCCESS);
  CHECK(change(mapping(new_array(shape(kSide, kSide)), pool)) == kRefused);
  if (simulator()) {
    CHECK(change(mapping(new_mipmapped(shape(kSide, kSide), 1), pool)) == kRefused);
    CHECK(change(mapping(new_array(shape(kSide, 0, 0, CUDA_ARRAY3D_DEFERRED_MAPPING)), pool)) == kRefused);
    const unsigned cube = CUDA_ARRAY3D_CUBEMAP | CUDA_ARRAY3D_SPARSE;
    CHECK(change(mapping(new_array(shape(kSide, kSide, 6, cube)), pool)) == kRefused);
    CUDA_ARRAY3D_DESCRIPTOR planar = shape(kSide, kSide, 0, CUDA_ARRAY3D_DEFERRED_MAPPING);
    planar.Format = CU_AD_FORMAT_NV12;
    planar.NumChannels = 3;
    const CUarray whole = new_array(planar);
    CUarray plane = nullptr;
    REQUIRE(cuArrayGetPlane(&plane, whole, 0) == CUDA_SUCCESS);
    CHECK(change(mapping(plane, pool)) == kRefused);
    CHECK(change(mapping(whole, pool)) == CUDA_SUCCESS);
    CUarrayMapInfo other = mapping(sparse_array(), pool);
    other.resourceType = CU_RESOURCE_TYPE_LINEAR;
    CHECK(change(other) == kRefused);
    other.resourceType = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY;
    CHECK(change(other) == CUDA_ERROR_INVALID_HANDLE);
    const CUarray stale = sparse_array();
    REQUIRE(cuArrayDestroy(stale) == CUDA_SUCCESS);
    CHECK(change(mapping(stale, pool)) == CUDA_ERROR_INVALID_HANDLE);
  }
  CHECK(cuMemRelease(pool) == CUDA_SUCCESS);
}

TEST_CASE("offsets and extents are those of tiles inside the level") {
  const CurrentContext context;
  if (!has_sparse_arrays()) return;
  const CUarray array = sparse_array();
  const CUDA_ARRAY_SPARSE_PROPERTIES cut = cut_of(array);
  const unsigned tiles = kSide / cut.tileExtent.width;
  const CUmemGenericAllocationHandle pool = tile_pool();
  const auto with = [&](auto set) {
    CUarrayMapInfo asked = of_tiles(mapping(array, pool), cut, 0, 0);
    set(asked.subresource.sparseLevel);
    return change(asked);
  };
  CHECK(with([](auto &) {}) == CUDA_SUCCESS);
  CHECK(with([](auto &at) { at.offsetX = 1; }) == kRefused);
  CHECK(with([](auto &at) { at.offsetY = 1; }) == kRefused);
  CHECK(with([](auto &at) { at.offsetZ = 1; }) == kRefused);
  CHECK(with([](auto &at) { at.extentWidth -= 1; }) == kRefused);
  CHECK(with([](auto &at) { at.extentHeight += 1; }) == kRefused);
  CHECK(with([](auto &at) { at.extentDepth = 2; }) == kRefused);
  CHECK(with([](auto &at) { at.level = 1; }) == kRefused);
  CHECK(with([](auto &at) { at.layer = 1; }) == kRefused);
  CHECK(with([&](auto &at) { at.offsetX = tiles * cut.tileExtent.width; }) == kRefused);
  CHECK(with([&](auto &at) { at.extentWidth = (tiles + 1) * cut.tileExtent.width; }) == kRefused);
  if (simulator()) {  // of nothing cuda.h says nothing
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
  whole.offset = kTile;  // 63 tiles are left behind it
  CHECK(change(whole) == kRefused);
  whole.subresource.sparseLevel.extentWidth = 7 * 128;
  CHECK(change(whole) == CUDA_SUCCESS);
  CHECK(cuMemRelease(pool) == CUDA_SUCCESS);
}

TEST_CASE("layers, levels and depth are those of the array") {
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
  level.subresource.sparseLevel.level = 99;
  CHECK(change(level) == kRefused);
}

TEST_CASE("a part of the tail is whole tiles of it") {
  const CurrentContext context;
  if (!has_sparse_arrays() || !simulator()) return;
  const CUmipmappedArray array = new_mipmapped(shape(256, 256, 20, CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_SPARSE), 9);
  const std::size_t tail = cut_of(array).miptailSize;
  REQUIRE(tail == 8 * kTile);  // twenty times 64 by 64 floats and what is smaller
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
  CHECK(change(of_tail(unmapping(sparse_array()), 0, kTile)) == kRefused);  // has none
}

TEST_CASE("tiles lie on live memory of a tile pool that is large enough") {
  const CurrentContext context;
  if (!has_sparse_arrays()) return;
  const CUarray array = sparse_array();
  const CUDA_ARRAY_SPARSE_PROPERTIES cut = cut_of(array);
  const CUmemGenericAllocationHandle pool = tile_pool(), plain = physical(kGranule);
  CHECK(change(of_tiles(mapping(array, plain), cut, 0, 0)) == kRefused);
  CHECK(change(of_tiles(mapping(array, pool), cut, 0, 0)) == CUDA_SUCCESS);
  CHECK(change(of_tiles(mapping(array, pool, 1), cut, 0, 0)) == kRefused);
  CHECK(change(of_tiles(mapping(array, pool, kGranule - kTile), cut, 0, 0)) == CUDA_SUCCESS);
  CHECK(change(of_tiles(mapping(array, pool, kGranule - kTile), cut, 0, 0, 2, 1)) == kRefused);
  CHECK(change(of_tiles(mapping(array, pool, 2 * kGranule), cut, 0, 0)) == kRefused);
  CUarrayMapInfo unmap = unmapping(array);
  unmap.memHandle.memHandle = pool;
  CHECK(change(unmap) == kRefused);
  CHECK(cuMemRelease(plain) == CUDA_SUCCESS);
  CHECK(cuMemRelease(pool) == CUDA_SUCCESS);
  if (!simulator()) return;
  CHECK(change(mapping(array, pool)) == kRefused);  // though a tile keeps the memory
  CHECK(change(mapping(array, 0)) == kRefused);
  CUarrayMapInfo neither = mapping(array, pool);
  neither.memOperationType = static_cast<CUmemOperationType>(0);
  CHECK(change(neither) == kRefused);
  CUmemAllocationProp host = properties_of(CU_MEM_LOCATION_TYPE_HOST);
  host.allocFlags.usage = CU_MEM_CREATE_USAGE_TILE_POOL;
  const CUmemGenericAllocationHandle of_host = physical(kGranule, host);
  CHECK(change(mapping(array, of_host)) == kRefused);
  CHECK(cuMemRelease(of_host) == CUDA_SUCCESS);
}

TEST_CASE("the mask names the stream's device alone, whose the array and its memory are, too") {
  int count = 0;
  const CurrentContext context;
  REQUIRE(cuDeviceGetCount(&count) == CUDA_SUCCESS);
  if (!has_sparse_arrays()) return;
  const CUarray array = sparse_array();
  for (const unsigned mask : {0u, 3u, 2u, 0x80000000u}) {
    CUarrayMapInfo asked = unmapping(array);
    asked.deviceBitMask = mask;
    CHECK(change(asked) == kRefused);
  }
  CUarrayMapInfo asked = unmapping(array);
  asked.reserved[1] = 1;
  CHECK(change(asked) == kRefused);
  if (count == 1 || !simulator()) return;
  const CUmemGenericAllocationHandle elsewhere = tile_pool(kGranule, 1);
  CHECK(change(mapping(array, elsewhere)) == kRefused);
  const CurrentContext other(1);
  CUarrayMapInfo there = mapping(sparse_array(), elsewhere);
  CHECK(change(there) == kRefused);
  there.deviceBitMask = 2;
  CHECK(change(there) == CUDA_SUCCESS);
  CUarrayMapInfo foreign = unmapping(array);
  foreign.deviceBitMask = 2;
  CHECK(change(foreign) == kRefused);
  CHECK(cuMemRelease(elsewhere) == CUDA_SUCCESS);
}

TEST_CASE("a mapping is not captured, and spoils the capture") {
  const CurrentContext context;
  if (!has_sparse_arrays() || !simulator()) return;  // cuda.h has no word about it
  const std::size_t before = free_bytes();
  const CUstream stream = new_stream();
  const CUmemGenericAllocationHandle pool = tile_pool();
  CUarrayMapInfo asked = mapping(sparse_array(), pool), bad = asked;
  bad.flags = 1;
  begin(stream);
  CHECK(cuMemMapArrayAsync(&bad, 1, stream) == kRefused);
  CHECK(capture_status(stream) == CU_STREAM_CAPTURE_STATUS_ACTIVE);
  CHECK(cuMemMapArrayAsync(&asked, 1, stream) == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  CHECK(capture_status(stream) == CU_STREAM_CAPTURE_STATUS_INVALIDATED);
  CHECK(cuMemMapArrayAsync(&asked, 1, stream) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  CHECK(end_result(stream) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  CHECK(cuMemRelease(pool) == CUDA_SUCCESS);
  CHECK(free_bytes() == before);
}

TEST_CASE("a stream that is none maps nothing") {
  const CurrentContext context;
  if (!has_sparse_arrays() || !simulator()) return;
  CUarrayMapInfo asked = unmapping(sparse_array());
  CHECK(cuMemMapArrayAsync(&asked, 1, reinterpret_cast<CUstream>(&asked)) == CUDA_ERROR_INVALID_HANDLE);
  REQUIRE(cuCtxSetCurrent(nullptr) == CUDA_SUCCESS);
  CHECK(cuMemMapArrayAsync(&asked, 1, nullptr) == CUDA_ERROR_INVALID_CONTEXT);
}

}  // namespace
}  // namespace simcuda::conformance
