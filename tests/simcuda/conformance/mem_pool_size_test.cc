// A memory pool's share of the device: growth, retention, release.
#include <thread>

#include "tests/simcuda/conformance/pool.h"

namespace simcuda::conformance {
namespace {

TEST_CASE("a pool's reserved bytes reduce the device's free memory exactly, whether used or not", "[alone]") {
  const CurrentContext context;
  Pool pool;
  const std::size_t before = free_bytes();
  const CUdeviceptr small = pool.allocate(1, nullptr);
  CHECK(pool.used() >= 1);
  CHECK(pool.reserved() >= pool.used());
  const CUdeviceptr large = pool.allocate(kStep + 1, nullptr);
  if (simulator()) {
    CHECK(pool.used() == 512 + kStep + 512);
    CHECK(pool.reserved() == 3 * kStep);
    CHECK(before - free_bytes() == pool.reserved());
  }
  REQUIRE(cuMemFreeAsync(small, nullptr) == CUDA_SUCCESS);
  REQUIRE(cuMemFreeAsync(large, nullptr) == CUDA_SUCCESS);
  CHECK(pool.used() == 0);
  CHECK(pool.reserved() > 0);
  REQUIRE(cuCtxSynchronize() == CUDA_SUCCESS);
  CHECK(pool.reserved() == 0);
  CHECK(free_bytes() == before);
}

TEST_CASE("synchronising a stream, an event or a context releases memory past the threshold") {
  const CurrentContext context;
  Pool pool;
  const CUstream stream = new_stream();
  const CUevent event = new_event();
  const auto use = [&] {
    const CUdeviceptr one = pool.allocate(kStep, stream), other = pool.allocate(kStep, stream);
    REQUIRE(cuMemFreeAsync(one, stream) == CUDA_SUCCESS);
    REQUIRE(cuMemFreeAsync(other, stream) == CUDA_SUCCESS);
    REQUIRE(cuEventRecord(event, stream) == CUDA_SUCCESS);
    REQUIRE(pool.reserved() >= 2 * kStep);
  };
  use();
  REQUIRE(cuStreamSynchronize(stream) == CUDA_SUCCESS);
  CHECK(pool.reserved() == 0);
  use();
  REQUIRE(cuEventSynchronize(event) == CUDA_SUCCESS);
  CHECK(pool.reserved() == 0);
  use();
  REQUIRE(cuCtxSynchronize() == CUDA_SUCCESS);
  CHECK(pool.reserved() == 0);
  pool.keep(kStep);
  use();
  REQUIRE(cuStreamSynchronize(stream) == CUDA_SUCCESS);
  CHECK(pool.reserved() == kStep);
  pool.keep(kStep + 1);
  use();
  REQUIRE(cuStreamSynchronize(stream) == CUDA_SUCCESS);
  if (simulator()) CHECK(pool.reserved() == 2 * kStep);
}

TEST_CASE("synchronising releases no memory that is in use or has a pending free") {
  const CurrentContext context;
  Pool pool;
  const CUstream stream = new_stream(CU_STREAM_NON_BLOCKING), other = new_stream(CU_STREAM_NON_BLOCKING);
  Gate gate;
  gate.hold(stream);
  const CUdeviceptr freed = pool.allocate(kStep, stream), live = pool.allocate(kStep, stream);
  REQUIRE(cuMemFreeAsync(freed, stream) == CUDA_SUCCESS);
  REQUIRE(cuStreamSynchronize(other) == CUDA_SUCCESS);
  CHECK(pool.reserved() == 2 * kStep);
  CHECK(cuMemPoolTrimTo(pool.get(), 0) == CUDA_SUCCESS);
  CHECK(pool.reserved() == 2 * kStep);
  gate.open();
  REQUIRE(cuStreamSynchronize(stream) == CUDA_SUCCESS);
  CHECK(pool.reserved() == kStep);
  CHECK(cuMemFree(live) == CUDA_SUCCESS);
}

TEST_CASE("trimming releases idle memory and keeps at least the requested bytes") {
  const CurrentContext context;
  Pool pool;
  pool.keep(UINT64_MAX);
  std::vector<CUdeviceptr> blocks;
  for (int i = 0; i < 4; ++i) blocks.push_back(pool.allocate(kStep, nullptr));
  for (const CUdeviceptr block : blocks) REQUIRE(cuMemFreeAsync(block, nullptr) == CUDA_SUCCESS);
  REQUIRE(cuStreamSynchronize(nullptr) == CUDA_SUCCESS);
  CHECK(pool.reserved() == 4 * kStep);
  CHECK(cuMemPoolTrimTo(pool.get(), 5 * kStep) == CUDA_SUCCESS);
  CHECK(pool.reserved() == 4 * kStep);
  CHECK(cuMemPoolTrimTo(pool.get(), 3 * kStep - 1) == CUDA_SUCCESS);
  if (simulator()) CHECK(pool.reserved() == 3 * kStep);
  CHECK(cuMemPoolTrimTo(pool.get(), kStep) == CUDA_SUCCESS);
  CHECK(pool.reserved() == kStep);
  const CUdeviceptr live = pool.allocate(16, nullptr);
  CHECK(cuMemPoolTrimTo(pool.get(), 0) == CUDA_SUCCESS);
  CHECK(pool.reserved() == kStep);
  CHECK(cuMemFree(live) == CUDA_SUCCESS);
  CHECK(cuMemPoolTrimTo(pool.get(), 0) == CUDA_SUCCESS);
  CHECK(pool.reserved() == 0);
}

TEST_CASE("freed neighbours merge, and allocation is first fit") {
  if (!simulator()) return;  // a real driver's placement is unspecified
  const CurrentContext context;
  Pool pool;
  CUdeviceptr blocks[4];
  for (CUdeviceptr &block : blocks) block = pool.allocate(kStep / 4, nullptr);
  REQUIRE(cuMemFree(blocks[0]) == CUDA_SUCCESS);
  REQUIRE(cuMemFree(blocks[2]) == CUDA_SUCCESS);
  REQUIRE(cuMemFree(blocks[1]) == CUDA_SUCCESS);
  CHECK(pool.allocate(3 * kStep / 4, nullptr) == blocks[0]);
  CHECK(pool.reserved() == kStep);
}

TEST_CASE("a pool never reserves more than its maximum, in whole steps of 32 MiB") {
  const CurrentContext context;
  CUmemPoolProps props = pool_props();
  props.maxSize = 3 * kStep / 2;
  Pool pool(props);
  // H200, driver 580.159: 64 MiB for a maximum of 48
  const CUdeviceptr first = pool.allocate(kStep, nullptr), second = pool.allocate(kStep / 4, nullptr);
  CHECK(pool.reserved() == 2 * kStep);
  const CUdeviceptr third = pool.allocate(kStep / 2, nullptr);
  CUdeviceptr address = kUntouched;
  CHECK(cuMemAllocFromPoolAsync(&address, kStep / 2, pool.get(), nullptr) == CUDA_ERROR_OUT_OF_MEMORY);
  CHECK(address == 0);  // as cuMemAllocAsync (H100, H200: runtime.full_async)
  CHECK(pool.reserved() == 2 * kStep);
  for (const CUdeviceptr block : {first, second, third}) CHECK(cuMemFree(block) == CUDA_SUCCESS);
}

TEST_CASE("a full device refuses a pool growth, but not its reserved memory") {
  if (!simulator()) return;  // a real driver keeps spare granules
  const CurrentContext context;
  Pool pool;
  pool.keep(UINT64_MAX);
  const CUdeviceptr first = pool.allocate(kMiB, nullptr);
  const std::size_t rest = free_bytes();
  const CUdeviceptr filler = device_memory(rest - kStep + 512);
  CUdeviceptr address = kUntouched;
  CHECK(cuMemAllocFromPoolAsync(&address, kStep, pool.get(), nullptr) == CUDA_ERROR_OUT_OF_MEMORY);
  CHECK(address == 0);
  CHECK(free_bytes() == kStep - 512);
  const CUdeviceptr second = pool.allocate(kStep - kMiB, nullptr);
  CHECK(cuMemFree(filler) == CUDA_SUCCESS);
  CHECK(cuMemFree(first) == CUDA_SUCCESS);
  CHECK(cuMemFree(second) == CUDA_SUCCESS);
}

TEST_CASE("idle chunks that are too small are released for one that is large enough") {
  if (!simulator()) return;  // a real driver remaps the same memory
  const CurrentContext context;
  Pool pool;
  pool.keep(UINT64_MAX);
  const CUdeviceptr first = pool.allocate(kStep, nullptr), second = pool.allocate(kStep, nullptr);
  REQUIRE(cuMemFree(first) == CUDA_SUCCESS);
  REQUIRE(cuMemFree(second) == CUDA_SUCCESS);
  const CUdeviceptr filler = device_memory(free_bytes());
  const CUdeviceptr both = pool.allocate(2 * kStep, nullptr);
  CHECK(pool.reserved() == 2 * kStep);
  CHECK(cuMemFree(both) == CUDA_SUCCESS);
  CHECK(cuMemFree(filler) == CUDA_SUCCESS);
}

TEST_CASE("a destroyed pool's blocks stay valid, and its memory is released as they are freed") {
  const CurrentContext context;
  const std::size_t before = free_bytes();
  CUmemoryPool pool = nullptr;
  const CUmemPoolProps props = pool_props();
  REQUIRE(cuMemPoolCreate(&pool, &props) == CUDA_SUCCESS);
  CUdeviceptr first = 0, second = 0;
  REQUIRE(cuMemAllocFromPoolAsync(&first, kStep, pool, nullptr) == CUDA_SUCCESS);
  REQUIRE(cuMemAllocFromPoolAsync(&second, kStep, pool, nullptr) == CUDA_SUCCESS);
  REQUIRE(cuMemPoolDestroy(pool) == CUDA_SUCCESS);
  REQUIRE(cuMemsetD8(first, 5, kStep) == CUDA_SUCCESS);
  CHECK(read_back(first, 16) == std::vector<unsigned char>(16, 5));
  CHECK(cuMemFree(second) == CUDA_SUCCESS);
  if (simulator()) CHECK(before - free_bytes() == kStep);
  CHECK(cuMemFreeAsync(first, nullptr) == CUDA_SUCCESS);
  while (cuStreamQuery(nullptr) == CUDA_ERROR_NOT_READY) std::this_thread::yield();
  if (simulator()) CHECK(free_bytes() == before);  // without synchronising
}

TEST_CASE("a pool destroyed with pending frees is released when they complete", "[alone]") {
  const CurrentContext context;
  const std::size_t before = free_bytes();
  const CUstream stream = new_stream();
  Gate gate;
  gate.hold(stream);
  {
    Pool pool;
    REQUIRE(cuMemFreeAsync(pool.allocate(kStep, stream), stream) == CUDA_SUCCESS);
  }
  if (simulator()) CHECK(before - free_bytes() == kStep);
  gate.open();
  REQUIRE(cuStreamSynchronize(stream) == CUDA_SUCCESS);
  CHECK(free_bytes() == before);
}

TEST_CASE("a pool belongs to its device, whichever device the stream runs on") {
  start_driver();
  int count = 0;
  REQUIRE(cuDeviceGetCount(&count) == CUDA_SUCCESS);
  if (count < 2 || !simulator()) return;
  const CurrentContext context(0);
  Pool pool(pool_props(1));
  const std::size_t before = free_bytes();
  simcuda_books books = {};
  REQUIRE(simulator().device_books(1, &books) == 0);
  const auto reserved = books.pool_bytes;
  const CUdeviceptr address = pool.allocate(kMiB, nullptr);
  CHECK(free_bytes() == before);
  REQUIRE(simulator().device_books(1, &books) == 0);
  CHECK(books.pool_bytes == reserved + kStep);
  int ordinal = -1;
  REQUIRE(cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, address) == CUDA_SUCCESS);
  CHECK(ordinal == 1);
  CHECK(cuMemFree(address) == CUDA_SUCCESS);
}

// H100, H200, driver 580.159: questions.pools.retained.
TEST_CASE("what a pool retains serves cuMemAlloc, and another pool, that find no other room", "[alone]") {
  const CurrentContext context;
  Pool first, second;
  for (const bool of_another_pool : {false, true}) {
    first.keep(UINT64_MAX);
    const std::size_t most = free_bytes() / kStep * kStep - 2 * kStep;
    REQUIRE(cuMemFreeAsync(first.allocate(most, nullptr), nullptr) == CUDA_SUCCESS);
    REQUIRE(cuStreamSynchronize(nullptr) == CUDA_SUCCESS);
    CHECK(first.reserved() == most);
    if (of_another_pool) {
      REQUIRE(cuMemFreeAsync(second.allocate(most / 2, nullptr), nullptr) == CUDA_SUCCESS);
    } else {
      REQUIRE(cuMemFree(device_memory(most / 2)) == CUDA_SUCCESS);
    }
    CHECK(first.reserved() == 0);
    REQUIRE(cuStreamSynchronize(nullptr) == CUDA_SUCCESS);
  }
}

TEST_CASE("resetting the primary context does not affect a pool's memory") {
  start_driver();
  CUcontext primary = nullptr;
  REQUIRE(cuDevicePrimaryCtxRetain(&primary, 0) == CUDA_SUCCESS);
  REQUIRE(cuCtxPushCurrent(primary) == CUDA_SUCCESS);
  Pool pool;
  const CUdeviceptr address = pool.allocate(kMiB, nullptr);
  REQUIRE(cuDevicePrimaryCtxReset(0) == CUDA_SUCCESS);
  CHECK(pool.used() == kMiB);
  REQUIRE(cuCtxPopCurrent(&primary) == CUDA_SUCCESS);
  const CurrentContext context;
  CHECK(cuMemFree(address) == CUDA_SUCCESS);
  CHECK(cuDevicePrimaryCtxRelease(0) == CUDA_SUCCESS);
}

}  // namespace
}  // namespace simcuda::conformance
