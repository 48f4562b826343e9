// The lifetime of memory under sparse and deferred-mapping arrays: as long as a handle names it, a tile uses it, or a
// mapping or unmapping is queued in a stream.
#include "tests/simcuda/conformance/sparse.h"

namespace simcuda::conformance {
namespace {

// Bytes that the device has allocated since the start of a test; a real one allocates in chunks of unknown size.
class Held {
 public:
  bool is(std::size_t bytes) const { return !simulator() || before_ - free_bytes() == bytes; }

 private:
  std::size_t before_ = free_bytes();
};

TEST_CASE("released memory is freed when no tile uses it any more") {
  const CurrentContext context;
  if (!has_sparse_arrays()) return;
  const Held held;
  const CUarray array = sparse_array();
  CHECK(held.is(0));
  const CUmemGenericAllocationHandle pool = tile_pool();
  CHECK(change(mapping(array, pool)) == CUDA_SUCCESS);
  CHECK(cuMemRelease(pool) == CUDA_SUCCESS);
  CHECK(held.is(kGranule));
  if (simulator()) {
    simcuda_books books = {};
    REQUIRE(simulator().device_books(0, &books) == 0);
    CHECK((books.physical == 1 && books.physical_bytes == kGranule));
    CHECK((books.arrays == 1 && books.array_bytes == 0));
    CHECK(cuMemRelease(pool) == CUDA_ERROR_INVALID_VALUE);
  }
  CHECK(change(unmapping(array)) == CUDA_SUCCESS);
  CHECK(held.is(0));
  CHECK(cuArrayDestroy(array) == CUDA_SUCCESS);
}

TEST_CASE("memory that no tile uses is freed when it is released") {
  const CurrentContext context;
  if (!has_sparse_arrays()) return;
  const Held held;
  const CUarray array = sparse_array();
  const CUmemGenericAllocationHandle pool = tile_pool();
  CHECK(change(mapping(array, pool)) == CUDA_SUCCESS);
  CHECK(change(unmapping(array)) == CUDA_SUCCESS);
  CHECK(held.is(kGranule));
  CHECK(change(mapping(array, pool)) == CUDA_SUCCESS);
  CHECK(change(unmapping(array)) == CUDA_SUCCESS);
  CHECK(cuMemRelease(pool) == CUDA_SUCCESS);
  CHECK(held.is(0));
}

TEST_CASE("tiles mapped together can be unmapped singly, and the last one frees the memory") {
  const CurrentContext context;
  if (!has_sparse_arrays()) return;
  const Held held;
  const CUarray array = sparse_array();
  const CUDA_ARRAY_SPARSE_PROPERTIES cut = cut_of(array);
  const CUmemGenericAllocationHandle pool = tile_pool();
  CHECK(change(of_tiles(mapping(array, pool), cut, 1, 2, 2, 2)) == CUDA_SUCCESS);
  CHECK(cuMemRelease(pool) == CUDA_SUCCESS);
  for (const unsigned y : {3u, 2u}) {
    for (const unsigned x : {2u, 1u}) {
      CHECK(held.is(kGranule));
      CHECK(change(of_tiles(unmapping(array), cut, x, y)) == CUDA_SUCCESS);
    }
  }
  CHECK(held.is(0));
}

TEST_CASE("a remapped tile drops its previous memory") {
  const CurrentContext context;
  if (!has_sparse_arrays()) return;
  const Held held;
  const CUarray array = sparse_array();
  const CUDA_ARRAY_SPARSE_PROPERTIES cut = cut_of(array);
  const CUmemGenericAllocationHandle older = tile_pool(), newer = tile_pool();
  CHECK(change(of_tiles(mapping(array, older), cut, 0, 0, 2, 1)) == CUDA_SUCCESS);
  CHECK(cuMemRelease(older) == CUDA_SUCCESS);
  CHECK(change(of_tiles(mapping(array, newer), cut, 1, 0, 2, 1)) == CUDA_SUCCESS);
  CHECK(held.is(2 * kGranule));
  CHECK(change(of_tiles(mapping(array, newer, kTile), cut, 0, 0)) == CUDA_SUCCESS);
  CHECK(held.is(kGranule));
  CHECK(cuMemRelease(newer) == CUDA_SUCCESS);
  CHECK(held.is(kGranule));
  CHECK(change(of_tiles(unmapping(array), cut, 0, 0, 3, 1)) == CUDA_SUCCESS);
  CHECK(held.is(0));
}

TEST_CASE("several arrays may use the same memory, which is freed with the last of them") {
  const CurrentContext context;
  if (!has_sparse_arrays()) return;
  const Held held;
  const CUarray first = sparse_array(), second = sparse_array();
  const CUmemGenericAllocationHandle pool = tile_pool();
  CUarrayMapInfo both[] = {mapping(first, pool), mapping(second, pool)};
  CHECK(cuMemMapArrayAsync(both, 2, nullptr) == CUDA_SUCCESS);
  CHECK(cuMemRelease(pool) == CUDA_SUCCESS);
  CHECK(cuArrayDestroy(first) == CUDA_SUCCESS);
  CHECK(held.is(kGranule));
  CHECK(cuArrayDestroy(second) == CUDA_SUCCESS);
  CHECK(held.is(0));
}

TEST_CASE("a destroyed mipmapped array frees the memory of its levels and its tail") {
  const CurrentContext context;
  if (!has_sparse_arrays()) return;
  const Held held;
  const CUmipmappedArray array = new_mipmapped(shape(kSide, kSide, 0, CUDA_ARRAY3D_SPARSE), 10);
  const CUDA_ARRAY_SPARSE_PROPERTIES cut = cut_of(array);
  REQUIRE((cut.miptailFirstLevel > 1 && cut.miptailSize != 0));
  const CUmemGenericAllocationHandle of_level = tile_pool(), of_its_tail = tile_pool();
  CUarrayMapInfo level = of_tiles(mapping(array, of_level, kTile), cut, 0, 0);
  level.subresource.sparseLevel.level = 1;
  CHECK(change(level) == CUDA_SUCCESS);
  CHECK(change(of_tail(mapping(array, of_its_tail), 0, cut.miptailSize)) == CUDA_SUCCESS);
  CHECK(cuMemRelease(of_level) == CUDA_SUCCESS);
  CHECK(cuMemRelease(of_its_tail) == CUDA_SUCCESS);
  CHECK(held.is(2 * kGranule));
  if (simulator()) CHECK(change(unmapping(array)) == CUDA_SUCCESS);  // level 0, where nothing is mapped
  CHECK(held.is(2 * kGranule));
  CHECK(change(of_tail(unmapping(array), 0, cut.miptailSize)) == CUDA_SUCCESS);
  CHECK(held.is(kGranule));
  CHECK(cuMipmappedArrayDestroy(array) == CUDA_SUCCESS);
  CHECK(held.is(0));
}

TEST_CASE("an array of deferred mapping is mapped as a whole, whichever part is named") {
  const CurrentContext context;
  if (!supports(CU_DEVICE_ATTRIBUTE_DEFERRED_MAPPING_CUDA_ARRAY_SUPPORTED)) return;
  const Held held;
  const CUarray array = new_array(shape(kSide, kSide, 0, CUDA_ARRAY3D_DEFERRED_MAPPING));
  CUDA_ARRAY_MEMORY_REQUIREMENTS needs = {};
  REQUIRE(cuArrayGetMemoryRequirements(&needs, array, 0) == CUDA_SUCCESS);
  const std::size_t bytes = (needs.size + needs.alignment + kGranule - 1) / kGranule * kGranule;
  const CUmemGenericAllocationHandle pool = tile_pool(bytes);
  if (simulator()) CHECK(change(mapping(array, pool, bytes - kTile)) == CUDA_ERROR_INVALID_VALUE);
  CUarrayMapInfo odd = mapping(array, pool, needs.alignment);
  odd.subresource.sparseLevel = {9, 9, 1, 2, 3, 4, 5, 6};
  CHECK(change(odd) == CUDA_SUCCESS);
  CHECK(cuMemRelease(pool) == CUDA_SUCCESS);
  CHECK(held.is(bytes));
  CHECK(change(of_tail(unmapping(array), 1, 1)) == CUDA_SUCCESS);
  CHECK(held.is(0));
}

TEST_CASE("a destroyed context frees the memory of its arrays") {
  const CurrentContext staying;
  if (!has_sparse_arrays()) return;
  const Held held;
  const CUmemGenericAllocationHandle pool = tile_pool();
  {
    const CurrentContext going;
    CUarrayMapInfo request = mapping(sparse_array(), pool);
    CHECK(cuMemMapArrayAsync(&request, 1, new_stream()) == CUDA_SUCCESS);
  }
  REQUIRE(cuCtxSetCurrent(staying.get()) == CUDA_SUCCESS);
  CHECK(held.is(kGranule));
  CHECK(cuMemRelease(pool) == CUDA_SUCCESS);
  CHECK(held.is(0));
}

// On a real driver the handle lives until its mapping has happened: H100, H200, driver 580.159 ended both processes
// that released it before.
void release_at_once(CUmemGenericAllocationHandle handle) {
  if (simulator()) CHECK(cuMemRelease(handle) == CUDA_SUCCESS);
}
void release_late(CUmemGenericAllocationHandle handle) {
  if (!simulator()) CHECK(cuMemRelease(handle) == CUDA_SUCCESS);
}

TEST_CASE("memory is kept from the call on, and freed only when the stream has reached the unmapping") {
  const CurrentContext context;
  if (!has_sparse_arrays()) return;
  const Held held;
  const CUstream stream = new_stream(CU_STREAM_NON_BLOCKING);
  const CUarray array = sparse_array();
  const CUmemGenericAllocationHandle pool = tile_pool();
  CUarrayMapInfo map = mapping(array, pool), unmap = unmapping(array);
  {
    Gate gate;
    gate.hold(stream);
    CHECK(cuMemMapArrayAsync(&map, 1, stream) == CUDA_SUCCESS);
    release_at_once(pool);
    CHECK(held.is(kGranule));
    CHECK(cuStreamQuery(stream) == CUDA_ERROR_NOT_READY);
  }
  REQUIRE(cuStreamSynchronize(stream) == CUDA_SUCCESS);
  release_late(pool);
  CHECK(held.is(kGranule));
  {
    Gate gate;
    gate.hold(stream);
    CHECK(cuMemMapArrayAsync(&unmap, 1, stream) == CUDA_SUCCESS);
    map = {};
    unmap = {};  // the program may change the list again
    CHECK(held.is(kGranule));
    CHECK(cuStreamQuery(stream) == CUDA_ERROR_NOT_READY);
  }
  REQUIRE(cuStreamSynchronize(stream) == CUDA_SUCCESS);
  CHECK(held.is(0));
}

TEST_CASE("an array destroyed before another context's stream maps it keeps nothing") {
  const CurrentContext owner;
  if (!has_sparse_arrays() || !simulator()) return;  // cuda.h does not specify it
  const CurrentContext other;
  const CUstream stream = new_stream(CU_STREAM_NON_BLOCKING);
  CUcontext popped = nullptr;
  REQUIRE(cuCtxPopCurrent(&popped) == CUDA_SUCCESS);
  const Held held;
  const CUarray array = sparse_array();
  const CUmemGenericAllocationHandle pool = tile_pool();
  CUarrayMapInfo request = mapping(array, pool);
  {
    Gate gate;
    gate.hold(stream);
    CHECK(cuMemMapArrayAsync(&request, 1, stream) == CUDA_SUCCESS);
    CHECK(cuMemRelease(pool) == CUDA_SUCCESS);
    CHECK(cuArrayDestroy(array) == CUDA_SUCCESS);
    CHECK(held.is(kGranule));
  }
  REQUIRE(cuStreamSynchronize(stream) == CUDA_SUCCESS);
  CHECK(held.is(0));
}

TEST_CASE("a list's mappings and unmappings apply in order, also in a per-thread default stream") {
  const CurrentContext context;
  if (!has_sparse_arrays()) return;
  const Held held;
  const CUarray array = sparse_array();
  const CUmemGenericAllocationHandle first = tile_pool(), second = tile_pool();
  CUarrayMapInfo list[] = {mapping(array, first), unmapping(array), mapping(array, second)};
  Gate gate;
  gate.hold(CU_STREAM_PER_THREAD);
  CHECK(cuMemMapArrayAsync_ptsz(list, 3, nullptr) == CUDA_SUCCESS);
  for (const CUmemGenericAllocationHandle pool : {first, second}) release_at_once(pool);
  CHECK(held.is(2 * kGranule));
  gate.open();
  REQUIRE(cuStreamSynchronize(CU_STREAM_PER_THREAD) == CUDA_SUCCESS);
  for (const CUmemGenericAllocationHandle pool : {first, second}) release_late(pool);
  CHECK(held.is(kGranule));
  CHECK(cuArrayDestroy(array) == CUDA_SUCCESS);
  CHECK(held.is(0));
}

}  // namespace
}  // namespace simcuda::conformance
