// Lists that cuMemMapArrayAsync refuses: one invalid entry refuses the whole list.
#include "tests/simcuda/conformance/capture.h"
#include "tests/simcuda/conformance/sparse.h"

namespace simcuda::conformance {
namespace {

constexpr CUresult kRefused = CUDA_ERROR_INVALID_VALUE;

TEST_CASE("a list without entries is refused") {
  const CurrentContext context;
  if (!has_sparse_arrays() || !simulator()) return;  // cuda.h does not specify it
  CUarrayMapInfo request = unmapping(sparse_array());
  CHECK(cuMemMapArrayAsync(&request, 1, nullptr) == CUDA_SUCCESS);
  CHECK(cuMemMapArrayAsync(&request, 0, nullptr) == kRefused);
  CHECK(cuMemMapArrayAsync(nullptr, 1, nullptr) == kRefused);
}

TEST_CASE("a list with one invalid entry changes nothing", "[alone]") {
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

TEST_CASE("only whole 2D or 3D arrays whose memory is mapped later can be mapped") {
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

TEST_CASE("tiles require live memory of a tile pool that is large enough") {
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
  CHECK(change(unmap) == CUDA_SUCCESS);  // H100, driver 580.159
  CUarrayMapInfo neither = mapping(array, pool);
  neither.memOperationType = static_cast<CUmemOperationType>(0);
  CHECK(change(neither) == kRefused);
  CHECK(cuMemRelease(plain) == CUDA_SUCCESS);
  CHECK(cuMemRelease(pool) == CUDA_SUCCESS);
  if (!simulator()) return;
  CHECK(change(mapping(array, pool)) == kRefused);  // released
  CHECK(change(mapping(array, 0)) == kRefused);
  CUmemAllocationProp host = properties_of(CU_MEM_LOCATION_TYPE_HOST);
  host.allocFlags.usage = CU_MEM_CREATE_USAGE_TILE_POOL;
  const CUmemGenericAllocationHandle of_host = physical(kGranule, host);
  CHECK(change(mapping(array, of_host)) == kRefused);
  CHECK(cuMemRelease(of_host) == CUDA_SUCCESS);
}

TEST_CASE("the mask names only the stream's device, which must own the array and its memory") {
  const CurrentContext context;
  if (!has_sparse_arrays()) return;
  int count = 0;
  REQUIRE(cuDeviceGetCount(&count) == CUDA_SUCCESS);
  const CUarray array = sparse_array();
  for (const unsigned mask : {0u, 3u, 2u, 0x80000000u}) {
    CUarrayMapInfo request = unmapping(array);
    request.deviceBitMask = mask;
    CHECK(change(request) == kRefused);
  }
  CUarrayMapInfo request = unmapping(array);
  request.reserved[1] = 1;
  CHECK(change(request) == kRefused);
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

TEST_CASE("a mapping cannot be captured, and invalidates the capture") {
  const CurrentContext context;
  if (!has_sparse_arrays() || !simulator()) return;  // cuda.h does not specify it
  const std::size_t before = free_bytes();
  const CUstream stream = new_stream();
  const CUmemGenericAllocationHandle pool = tile_pool();
  CUarrayMapInfo request = mapping(sparse_array(), pool), bad = request;
  bad.flags = 1;
  begin(stream);
  CHECK(cuMemMapArrayAsync(&bad, 1, stream) == kRefused);
  CHECK(capture_status(stream) == CU_STREAM_CAPTURE_STATUS_ACTIVE);
  CHECK(cuMemMapArrayAsync(&request, 1, stream) == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  CHECK(capture_status(stream) == CU_STREAM_CAPTURE_STATUS_INVALIDATED);
  CHECK(cuMemMapArrayAsync(&request, 1, stream) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  CHECK(end_result(stream) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  CHECK(cuMemRelease(pool) == CUDA_SUCCESS);
  CHECK(free_bytes() == before);
}

TEST_CASE("an invalid stream maps nothing") {
  const CurrentContext context;
  if (!has_sparse_arrays() || !simulator()) return;
  CUarrayMapInfo request = unmapping(sparse_array());
  CHECK(cuMemMapArrayAsync(&request, 1, reinterpret_cast<CUstream>(&request)) == CUDA_ERROR_INVALID_HANDLE);
  CUresult without_context = CUDA_SUCCESS;
  std::thread([&] { without_context = cuMemMapArrayAsync(&request, 1, nullptr); }).join();
  CHECK(without_context == CUDA_ERROR_INVALID_CONTEXT);
}

}  // namespace
}  // namespace simcuda::conformance
