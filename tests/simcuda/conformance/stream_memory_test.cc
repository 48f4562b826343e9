// Stream-ordered memory: which streams may reuse freed memory, and when.
#include <thread>

#include "tests/simcuda/conformance/pool.h"

namespace simcuda::conformance {
namespace {

// Waits until the device has completed everything, without a synchronising call to the driver.
void await_idle(CUstream stream) {
  while (cuStreamQuery(stream) == CUDA_ERROR_NOT_READY) std::this_thread::yield();
}

TEST_CASE("stream-ordered memory stores what its stream writes") {
  const CurrentContext context;
  const CUstream stream = new_stream();
  CUdeviceptr first = 0, second = 0;
  REQUIRE(cuMemAllocAsync(&first, kMiB, stream) == CUDA_SUCCESS);
  REQUIRE(cuMemAllocAsync(&second, kMiB, stream) == CUDA_SUCCESS);
  const auto values = counting(kMiB);
  std::vector<unsigned char> seen(kMiB);
  REQUIRE(cuMemsetD8Async(second, 9, kMiB, stream) == CUDA_SUCCESS);
  REQUIRE(cuMemcpyHtoDAsync(first, values.data(), kMiB, stream) == CUDA_SUCCESS);
  REQUIRE(cuMemcpyDtoDAsync(second + kMiB / 2, first + kMiB / 2, kMiB / 2, stream) == CUDA_SUCCESS);
  REQUIRE(cuMemcpyDtoHAsync(seen.data(), second, kMiB, stream) == CUDA_SUCCESS);
  REQUIRE(cuMemFreeAsync(first, stream) == CUDA_SUCCESS);
  REQUIRE(cuMemFreeAsync(second, stream) == CUDA_SUCCESS);
  REQUIRE(cuStreamSynchronize(stream) == CUDA_SUCCESS);
  CHECK(std::vector<unsigned char>(seen.begin(), seen.begin() + kMiB / 2) == std::vector<unsigned char>(kMiB / 2, 9));
  CHECK(std::vector<unsigned char>(seen.begin() + kMiB / 2, seen.end()) ==
        std::vector<unsigned char>(values.begin() + kMiB / 2, values.end()));
}

TEST_CASE("a stream-ordered allocation of no bytes is address 0") {
  const CurrentContext context;
  Pool pool;
  CUdeviceptr address = kUntouched;
  CHECK(cuMemAllocAsync(&address, 0, nullptr) == CUDA_SUCCESS);  // H200, driver 580.159
  CHECK(address == 0);
  address = kUntouched;
  CHECK(cuMemAllocFromPoolAsync(&address, 0, pool.get(), nullptr) == CUDA_SUCCESS);  // H200, driver 580.159
  CHECK(address == 0);
  CHECK(pool.reserved() == 0);
}

TEST_CASE("a stream-ordered allocation requires an output pointer, a valid pool and a valid stream") {
  const CurrentContext context;
  Pool pool;
  CUdeviceptr address = kUntouched;
  CHECK(cuMemAllocAsync(nullptr, 16, nullptr) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemAllocFromPoolAsync(&address, 16, nullptr, nullptr) == CUDA_ERROR_INVALID_VALUE);
  if (simulator()) {
    int local = 0;
    CHECK(cuMemAllocFromPoolAsync(&address, 16, reinterpret_cast<CUmemoryPool>(&local), nullptr) ==
          CUDA_ERROR_INVALID_VALUE);
    CHECK(cuMemAllocAsync(&address, 16, reinterpret_cast<CUstream>(&local)) == CUDA_ERROR_INVALID_HANDLE);
  }
  CHECK(cuMemAllocFromPoolAsync(&address, SIZE_MAX, pool.get(), nullptr) == CUDA_ERROR_OUT_OF_MEMORY);
  CHECK(address == 0);  // as cuMemAllocAsync (H100, H200: runtime.full_async)
  CHECK(pool.reserved() == 0);
}

TEST_CASE("a stream can reuse its own frees at once, in parts and merged") {
  const CurrentContext context;
  Pool pool;
  const CUstream stream = new_stream();
  Gate gate;
  gate.hold(stream);
  const CUdeviceptr first = pool.allocate(kMiB, stream), second = pool.allocate(kMiB, stream);
  REQUIRE(cuMemFreeAsync(first, stream) == CUDA_SUCCESS);
  REQUIRE(cuMemFreeAsync(second, stream) == CUDA_SUCCESS);
  CHECK(pool.used() == 0);
  if (simulator()) {
    CHECK(second == first + kMiB);
    const CUdeviceptr both = pool.allocate(2 * kMiB, stream);
    CHECK(both == first);
    REQUIRE(cuMemFreeAsync(both, stream) == CUDA_SUCCESS);
    CHECK(pool.allocate(kMiB / 2, stream) == first);
    CHECK(pool.allocate(kMiB / 2, stream) == first + kMiB / 2);
  }
  gate.open();
}

TEST_CASE("another stream can reuse a free only once it has completed") {
  const CurrentContext context;
  Pool pool;
  pool.keep(UINT64_MAX);
  const CUstream one = new_stream(CU_STREAM_NON_BLOCKING), other = new_stream(CU_STREAM_NON_BLOCKING);
  if (!simulator()) pool.allow(CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES, false);
  Gate gate;
  gate.hold(one);
  const CUdeviceptr first = pool.allocate(kMiB, one);
  REQUIRE(cuMemFreeAsync(first, one) == CUDA_SUCCESS);
  const CUdeviceptr second = pool.allocate(kMiB, other);
  CHECK(second != first);
  gate.open();
  await_idle(one);
  CHECK(pool.allocate(kMiB, other) == first);
}

TEST_CASE("a pool without opportunistic reuse learns of completed frees by synchronising") {
  const CurrentContext context;
  Pool pool;
  pool.keep(UINT64_MAX);
  pool.allow(CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC, false);
  pool.allow(CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES, false);
  const CUstream one = new_stream(CU_STREAM_NON_BLOCKING), other = new_stream(CU_STREAM_NON_BLOCKING);
  const CUdeviceptr first = pool.allocate(kMiB, one);
  REQUIRE(cuMemFreeAsync(first, one) == CUDA_SUCCESS);
  await_idle(one);
  CHECK(pool.allocate(kMiB, other) != first);
  REQUIRE(cuStreamSynchronize(one) == CUDA_SUCCESS);
  CHECK(pool.allocate(kMiB, other) == first);
}

TEST_CASE("only the start of a stream's live memory can be freed, and only once") {
  const CurrentContext context;
  Pool pool;
  const CUdeviceptr address = pool.allocate(kMiB, nullptr);
  CHECK(cuMemFreeAsync(address + 512, nullptr) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemFree(address + 512) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemFreeAsync(address, nullptr) == CUDA_SUCCESS);
  CHECK(cuMemFreeAsync(address, nullptr) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemFree(address) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("a synchronous free of a pool's memory waits for no stream") {
  const CurrentContext context;
  Pool pool;
  const CUstream stream = new_stream();
  Gate gate;
  gate.hold(stream);
  CHECK(cuMemFree(pool.allocate(kMiB, stream)) == CUDA_SUCCESS);
  CHECK_FALSE(gate.is_open());
  CHECK(pool.used() == kMiB);  // H100, H200, driver 580.159: its stream has not allocated it yet
  gate.open();
  REQUIRE(cuStreamSynchronize(stream) == CUDA_SUCCESS);
  if (simulator()) CHECK(pool.used() == 0);  // not measured
}

TEST_CASE("memory that is freed before its stream has allocated it is for other streams only afterwards") {
  if (!simulator()) return;  // that a block reuses another one's memory is specific to the simulator
  const CurrentContext context;
  Pool pool;
  pool.keep(UINT64_MAX);
  const CUstream stream = new_stream(CU_STREAM_NON_BLOCKING), other = new_stream(CU_STREAM_NON_BLOCKING);
  Gate gate;
  gate.hold(stream);
  const CUdeviceptr first = pool.allocate(kMiB, stream);
  REQUIRE(cuMemFreeAsync(first, stream) == CUDA_SUCCESS);
  REQUIRE(pool.allocate(kMiB, stream) == first);
  REQUIRE(cuMemFree(first) == CUDA_SUCCESS);
  CHECK(pool.allocate(kMiB, other) != first);
  gate.open();
  REQUIRE(cuStreamSynchronize(stream) == CUDA_SUCCESS);
  CHECK(pool.used() == kMiB);
  CHECK(pool.allocate(kMiB, other) == first);
}

TEST_CASE("a destroyed pool gives back what is freed before its stream has allocated it") {
  if (!simulator()) return;
  const CurrentContext context;
  const std::size_t before = free_bytes();
  const CUstream stream = new_stream(CU_STREAM_NON_BLOCKING);
  Gate gate;
  gate.hold(stream);
  {
    Pool pool;
    REQUIRE(cuMemFree(pool.allocate(kMiB, stream)) == CUDA_SUCCESS);
  }
  CHECK(before - free_bytes() == kStep);
  gate.open();
  while (cuStreamQuery(stream) == CUDA_ERROR_NOT_READY) std::this_thread::yield();
  CHECK(free_bytes() == before);  // without synchronising
}

TEST_CASE("a capture cannot free what it did not allocate, nor allocate nothing, and goes on") {
  const CurrentContext context;
  const CUstream stream = new_stream();
  Pool pool;
  const CUdeviceptr before = pool.allocate(kMiB, stream);
  REQUIRE(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED) == CUDA_SUCCESS);
  CUdeviceptr address = kUntouched;
  CHECK(cuMemFreeAsync(before, stream) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemAllocAsync(&address, 0, stream) == CUDA_ERROR_INVALID_VALUE);
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  REQUIRE(cuStreamIsCapturing(stream, &status) == CUDA_SUCCESS);
  CHECK(status == CU_STREAM_CAPTURE_STATUS_ACTIVE);
  CUgraph graph = nullptr;
  CHECK(cuStreamEndCapture(stream, &graph) == CUDA_SUCCESS);
  CHECK(cuGraphDestroy(graph) == CUDA_SUCCESS);
  CHECK(cuMemFreeAsync(before, stream) == CUDA_SUCCESS);
}

TEST_CASE("a capture elsewhere forbids stream-ordered allocations and frees, unless it is relaxed") {
  const CurrentContext context;
  const CUstream capturing = new_stream(CU_STREAM_NON_BLOCKING), stream = new_stream(CU_STREAM_NON_BLOCKING);
  Pool pool;
  CUdeviceptr address = pool.allocate(kMiB, stream), other = 0;
  const auto capture_while = [&](CUstreamCaptureMode mode, auto call) {
    CUgraph graph = nullptr;
    REQUIRE(cuStreamBeginCapture(capturing, mode) == CUDA_SUCCESS);
    const CUresult result = call();
    CHECK(cuStreamEndCapture(capturing, &graph) ==
          (result == CUDA_SUCCESS ? result : CUDA_ERROR_STREAM_CAPTURE_INVALIDATED));
    if (graph != nullptr) CHECK(cuGraphDestroy(graph) == CUDA_SUCCESS);
    return result;
  };
  const auto allocate = [&] { return cuMemAllocFromPoolAsync(&other, kMiB, pool.get(), stream); };
  const auto free = [&] { return cuMemFreeAsync(address, stream); };
  // H100, H200, driver 580.159: 900, and 0 where the capture is relaxed
  for (const auto mode : {CU_STREAM_CAPTURE_MODE_GLOBAL, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL}) {
    CHECK(capture_while(mode, allocate) == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    CHECK(capture_while(mode, free) == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  }
  CHECK(capture_while(CU_STREAM_CAPTURE_MODE_RELAXED, allocate) == CUDA_SUCCESS);
  CHECK(capture_while(CU_STREAM_CAPTURE_MODE_RELAXED, free) == CUDA_SUCCESS);
  CHECK(cuMemFreeAsync(other, stream) == CUDA_SUCCESS);
}

TEST_CASE("a block of a pool is a separate range, of its pool and of no context") {
  const CurrentContext context;
  Pool pool;
  const CUdeviceptr address = pool.allocate(1000, nullptr), next = pool.allocate(1000, nullptr);
  const auto ask = [](CUpointer_attribute attribute, CUdeviceptr at, auto value) {
    REQUIRE(cuPointerGetAttribute(&value, attribute, at) == CUDA_SUCCESS);
    return value;
  };
  CHECK(ask(CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, address + 999, CUmemoryPool{}) == pool.get());
  CHECK(ask(CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, address + 999, CUdeviceptr{}) == address);
  CHECK(ask(CU_POINTER_ATTRIBUTE_RANGE_SIZE, address, std::size_t{}) == 1000);
  CHECK(ask(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address, 0u) == CU_MEMORYTYPE_DEVICE);
  CHECK(ask(CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, address, -1) == 0);
  CHECK(ask(CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, address, 0) == 0);
  CHECK(ask(CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES, address, std::uint64_t{1}) == 0);
  CHECK(ask(CU_POINTER_ATTRIBUTE_BUFFER_ID, address, 0ull) != ask(CU_POINTER_ATTRIBUTE_BUFFER_ID, next, 0ull));
  CUcontext owner = context.get();
  void *where = &owner;
  CUpointer_attribute attribute = CU_POINTER_ATTRIBUTE_CONTEXT;
  CHECK(cuPointerGetAttributes(1, &attribute, &where, address) == CUDA_SUCCESS);
  CHECK(owner == nullptr);
  CUdeviceptr base = 0;
  std::size_t size = 0;
  REQUIRE(cuMemGetAddressRange(&base, &size, address + 999) == CUDA_SUCCESS);
  CHECK(base == address);
  CHECK(size == 1000);
  const CUdeviceptr ordinary = device_memory(16);
  CHECK(ask(CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, ordinary, pool.get()) == nullptr);
  CUipcMemHandle handle = {};
  CHECK(cuIpcGetMemHandle(&handle, address) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemFree(address) == CUDA_SUCCESS);
  CHECK(cuMemFree(next) == CUDA_SUCCESS);
}

TEST_CASE("the same memory is another buffer when it belongs to another block") {
  const CurrentContext context;
  Pool pool;
  unsigned long long first = 0, second = 0;
  const CUdeviceptr address = pool.allocate(kMiB, nullptr);
  REQUIRE(cuPointerGetAttribute(&first, CU_POINTER_ATTRIBUTE_BUFFER_ID, address) == CUDA_SUCCESS);
  REQUIRE(cuMemFreeAsync(address, nullptr) == CUDA_SUCCESS);
  const CUdeviceptr again = pool.allocate(kMiB, nullptr);
  if (simulator()) REQUIRE(again == address);
  REQUIRE(cuPointerGetAttribute(&second, CU_POINTER_ATTRIBUTE_BUFFER_ID, again) == CUDA_SUCCESS);
  CHECK(first != second);
}

TEST_CASE("a pool's memory outlives the context in whose stream it was allocated") {
  const CurrentContext staying;
  Pool pool;
  CUdeviceptr address = 0;
  {
    const CurrentContext going;
    const CUstream stream = new_stream();
    address = pool.allocate(kMiB, stream);
    REQUIRE(cuMemsetD8Async(address, 7, kMiB, stream) == CUDA_SUCCESS);
  }
  REQUIRE(cuCtxSetCurrent(staying.get()) == CUDA_SUCCESS);
  CHECK(read_back(address, kMiB) == std::vector<unsigned char>(kMiB, 7));
  CHECK(cuMemFreeAsync(address, nullptr) == CUDA_SUCCESS);
}

TEST_CASE("in the per-thread flavour an allocation's stream 0 is the thread's stream") {
  const CurrentContext context;
  Pool pool;
  pool.keep(UINT64_MAX);
  Gate gate;
  gate.hold(CU_STREAM_PER_THREAD);
  CUdeviceptr first = 0, second = 0;
  REQUIRE(cuMemAllocFromPoolAsync_ptsz(&first, kMiB, pool.get(), nullptr) == CUDA_SUCCESS);
  REQUIRE(cuMemFreeAsync_ptsz(first, nullptr) == CUDA_SUCCESS);
  REQUIRE(cuMemAllocFromPoolAsync(&second, kMiB, pool.get(), CU_STREAM_PER_THREAD) == CUDA_SUCCESS);
  if (simulator()) CHECK(second == first);
  REQUIRE(cuMemAllocAsync_ptsz(&first, kMiB, nullptr) == CUDA_SUCCESS);
  CHECK(cuMemFreeAsync_ptsz(first, nullptr) == CUDA_SUCCESS);
}

}  // namespace
}  // namespace simcuda::conformance
