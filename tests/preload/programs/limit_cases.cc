// The ration as a program sees it through the driver's own calls. Runs under libration.so with RATION_LIMIT=1GiB;
// limit_test.py checks the log afterwards. Every case frees what it allocated.
#ifndef __CUDA_API_VERSION_INTERNAL
#define __CUDA_API_VERSION_INTERNAL
#endif
#include <cuda.h>

#include <atomic>
#include <thread>
#include <vector>

#include "catch.h"

namespace {

constexpr size_t kMiB = 1 << 20;
constexpr size_t kLimit = 1024 * kMiB;
constexpr CUdeviceptr kBefore = 0x5a5a5a5a5a5a5a5a;

size_t free_now() {
  size_t free_bytes = 0;
  REQUIRE(cuMemGetInfo_v2(&free_bytes, nullptr) == CUDA_SUCCESS);
  return free_bytes;
}

CUdeviceptr take(size_t bytes) {
  CUdeviceptr address = 0;
  REQUIRE(cuMemAlloc_v2(&address, bytes) == CUDA_SUCCESS);
  return address;
}

void refused(size_t bytes) {
  CUdeviceptr address = kBefore;
  REQUIRE(cuMemAlloc_v2(&address, bytes) == CUDA_ERROR_OUT_OF_MEMORY);
  REQUIRE(address == 0);
}

// A context of its own on device 0, current while it lives.
class OwnContext {
 public:
  OwnContext() {
    REQUIRE(cuInit(0) == CUDA_SUCCESS);
    REQUIRE(cuCtxCreate_v2(&handle_, 0, 0) == CUDA_SUCCESS);
  }
  ~OwnContext() { cuCtxDestroy_v2(handle_); }
  OwnContext(const OwnContext &) = delete;
  OwnContext &operator=(const OwnContext &) = delete;
  CUcontext handle() const { return handle_; }

 private:
  CUcontext handle_ = nullptr;
};

// Work in a stream that ends when the test says so.
class Gate {
 public:
  explicit Gate(CUstream stream) {
    REQUIRE(cuLaunchHostFunc(
                stream,
                [](void *gate) {
                  while (!static_cast<Gate *>(gate)->open_) {
                    std::this_thread::yield();
                  }
                },
                this) == CUDA_SUCCESS);
  }
  ~Gate() { open(); }
  Gate(const Gate &) = delete;
  Gate &operator=(const Gate &) = delete;
  void open() { open_ = true; }

 private:
  std::atomic<bool> open_{false};
};

}  // namespace

TEST_CASE("the ration is the device: total and free") {
  const OwnContext context;
  size_t free_bytes = 0;
  size_t total = 0;
  REQUIRE(cuMemGetInfo_v2(&free_bytes, &total) == CUDA_SUCCESS);
  REQUIRE(total == kLimit);
  REQUIRE(free_bytes == kLimit);
  REQUIRE(cuDeviceTotalMem_v2(&total, 0) == CUDA_SUCCESS);
  REQUIRE(total == kLimit);
}

TEST_CASE("a query may leave out what it does not want to know") {
  const OwnContext context;
  size_t free_bytes = 0;
  size_t total = 0;
  REQUIRE(cuMemGetInfo_v2(&free_bytes, nullptr) == CUDA_SUCCESS);
  REQUIRE(cuMemGetInfo_v2(nullptr, &total) == CUDA_SUCCESS);
  REQUIRE(cuMemGetInfo_v2(nullptr, nullptr) == CUDA_SUCCESS);
  REQUIRE(free_bytes == kLimit);
  REQUIRE(total == kLimit);
}

TEST_CASE("a device that does not exist is the driver's to refuse") {
  const OwnContext context;
  size_t total = 77;
  REQUIRE(cuDeviceTotalMem_v2(&total, 9) == CUDA_ERROR_INVALID_DEVICE);
  REQUIRE(total == 77);
}

TEST_CASE("a free gives its room to the next allocation") {
  const OwnContext context;
  const CUdeviceptr large = take(1000 * kMiB);
  REQUIRE(free_now() == 24 * kMiB);
  refused(25 * kMiB);
  const CUdeviceptr rest = take(24 * kMiB);
  REQUIRE(free_now() == 0);
  refused(1);
  REQUIRE(cuMemFree_v2(large) == CUDA_SUCCESS);
  REQUIRE(free_now() == 1000 * kMiB);
  REQUIRE(cuMemFree_v2(take(1000 * kMiB)) == CUDA_SUCCESS);
  REQUIRE(cuMemFree_v2(rest) == CUDA_SUCCESS);
  REQUIRE(free_now() == kLimit);
}

TEST_CASE("exactly the limit fits, one byte more does not") {
  const OwnContext context;
  refused(kLimit + 1);
  REQUIRE(cuMemFree_v2(take(kLimit)) == CUDA_SUCCESS);
}

TEST_CASE("requests beyond any device are refused, whatever they add up to") {
  const OwnContext context;
  const CUdeviceptr block = take(kMiB);
  refused(SIZE_MAX);
  refused(SIZE_MAX - kMiB + 1);
  REQUIRE(free_now() == kLimit - kMiB);
  REQUIRE(cuMemFree_v2(block) == CUDA_SUCCESS);
}

TEST_CASE("a free that the driver refuses changes nothing") {
  const OwnContext context;
  const CUdeviceptr block = take(kMiB);
  for (const CUdeviceptr garbage : {CUdeviceptr{0x1234}, block + 512, block + 1}) {
    REQUIRE(cuMemFree_v2(garbage) == CUDA_ERROR_INVALID_VALUE);
    REQUIRE(cuMemFreeAsync(garbage, nullptr) == CUDA_ERROR_INVALID_VALUE);
  }
  REQUIRE(free_now() == kLimit - kMiB);
  REQUIRE(cuMemFree_v2(block) == CUDA_SUCCESS);
  REQUIRE(cuMemFree_v2(block) == CUDA_ERROR_INVALID_VALUE);
  REQUIRE(cuMemFree_v2(0) == CUDA_SUCCESS);
  REQUIRE(free_now() == kLimit);
}

TEST_CASE("an allocation that the driver refuses takes no room") {
  const OwnContext context;
  REQUIRE(cuMemAlloc_v2(nullptr, kMiB) == CUDA_ERROR_INVALID_VALUE);
  CUdeviceptr address = kBefore;
  REQUIRE(cuMemAlloc_v2(&address, 0) == CUDA_ERROR_INVALID_VALUE);
  REQUIRE(address == 0);
  REQUIRE(free_now() == kLimit);
}

TEST_CASE("a null out-parameter is the driver's to refuse, whatever the size") {
  const OwnContext context;
  size_t pitch = 0;
  CUdeviceptr address = 0;
  REQUIRE(cuMemAlloc_v2(nullptr, 2 * kLimit) == CUDA_ERROR_INVALID_VALUE);
  REQUIRE(cuMemAllocPitch_v2(nullptr, &pitch, kLimit, 2, 4) == CUDA_ERROR_INVALID_VALUE);
  REQUIRE(cuMemAllocPitch_v2(&address, nullptr, kLimit, 2, 4) == CUDA_ERROR_INVALID_VALUE);
  REQUIRE(free_now() == kLimit);
}

TEST_CASE("a pitched allocation is charged with its pitch") {
  const OwnContext context;
  CUdeviceptr address = 0;
  size_t pitch = 0;
  REQUIRE(cuMemAllocPitch_v2(&address, &pitch, 1, 1000, 4) == CUDA_SUCCESS);
  REQUIRE(pitch > 1);
  REQUIRE(free_now() == kLimit - pitch * 1000);
  REQUIRE(cuMemFree_v2(address) == CUDA_SUCCESS);
  REQUIRE(free_now() == kLimit);
}

TEST_CASE("a pitched allocation that exceeds the limit only by its pitch is refused") {
  const OwnContext context;
  CUdeviceptr address = kBefore;
  size_t pitch = 77;
  REQUIRE(cuMemAllocPitch_v2(&address, &pitch, 1, kLimit / 256, 4) == CUDA_ERROR_OUT_OF_MEMORY);
  REQUIRE(address == 0);
  REQUIRE(pitch == 512);
  REQUIRE(cuMemAllocPitch_v2(&address, &pitch, SIZE_MAX / 2, 4, 4) == CUDA_ERROR_OUT_OF_MEMORY);
  REQUIRE(free_now() == kLimit);
}

TEST_CASE("destroying a context gives back what was in it") {
  const OwnContext outer;
  {
    const OwnContext context;
    take(600 * kMiB);
    take(400 * kMiB);
    refused(100 * kMiB);
  }
  REQUIRE(cuCtxSetCurrent(outer.handle()) == CUDA_SUCCESS);
  REQUIRE(free_now() == kLimit);
}

TEST_CASE("every exported end of a context gives back what was in it") {
  const OwnContext outer;
  CUcontext context = nullptr;
  REQUIRE(cuCtxCreate_v2(&context, 0, 0) == CUDA_SUCCESS);
  take(600 * kMiB);
  REQUIRE(cuCtxDestroy(context) == CUDA_SUCCESS);
  REQUIRE(cuCtxSetCurrent(outer.handle()) == CUDA_SUCCESS);
  REQUIRE(free_now() == kLimit);

  REQUIRE(cuCtxCreate(&context, 0, 0) == CUDA_SUCCESS);
  take(600 * kMiB);
  REQUIRE(cuCtxDetach(context) == CUDA_SUCCESS);
  REQUIRE(cuCtxSetCurrent(outer.handle()) == CUDA_SUCCESS);
  REQUIRE(free_now() == kLimit);
}

TEST_CASE("an attached context lives on until its last detach") {
  const OwnContext outer;
  CUcontext context = nullptr;
  REQUIRE(cuCtxCreate_v2(&context, 0, 0) == CUDA_SUCCESS);
  REQUIRE(cuCtxAttach(&context, 0) == CUDA_SUCCESS);
  take(600 * kMiB);
  REQUIRE(cuCtxDetach(context) == CUDA_SUCCESS);
  REQUIRE(free_now() == kLimit - 600 * kMiB);
  REQUIRE(cuCtxDetach(context) == CUDA_SUCCESS);
  REQUIRE(cuCtxSetCurrent(outer.handle()) == CUDA_SUCCESS);
  REQUIRE(free_now() == kLimit);
}

TEST_CASE("the last release of the primary context gives back what was in it, not the first") {
  const OwnContext outer;
  CUcontext primary = nullptr;
  REQUIRE(cuDevicePrimaryCtxRetain(&primary, 0) == CUDA_SUCCESS);
  REQUIRE(cuDevicePrimaryCtxRetain(&primary, 0) == CUDA_SUCCESS);
  REQUIRE(cuCtxSetCurrent(primary) == CUDA_SUCCESS);
  take(600 * kMiB);
  REQUIRE(cuDevicePrimaryCtxRelease(0) == CUDA_SUCCESS);
  REQUIRE(free_now() == kLimit - 600 * kMiB);
  REQUIRE(cuDevicePrimaryCtxRelease_v2(0) == CUDA_SUCCESS);
  REQUIRE(cuCtxSetCurrent(outer.handle()) == CUDA_SUCCESS);
  REQUIRE(free_now() == kLimit);
  REQUIRE(cuDevicePrimaryCtxRelease_v2(0) != CUDA_SUCCESS);
  REQUIRE(free_now() == kLimit);
}

TEST_CASE("a reset of the primary context gives back what was in it") {
  const OwnContext outer;
  for (const bool plain : {false, true}) {
    CUcontext primary = nullptr;
    REQUIRE(cuDevicePrimaryCtxRetain(&primary, 0) == CUDA_SUCCESS);
    REQUIRE(cuCtxSetCurrent(primary) == CUDA_SUCCESS);
    take(600 * kMiB);
    REQUIRE((plain ? cuDevicePrimaryCtxReset(0) : cuDevicePrimaryCtxReset_v2(0)) == CUDA_SUCCESS);
    REQUIRE(cuCtxSetCurrent(outer.handle()) == CUDA_SUCCESS);
    REQUIRE(free_now() == kLimit);
    cuDevicePrimaryCtxRelease_v2(0);
  }
}

TEST_CASE("a stream-ordered free returns its room once the stream has passed it") {
  const OwnContext context;
  CUstream stream = nullptr;
  REQUIRE(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
  const CUdeviceptr block = take(900 * kMiB);
  {
    Gate gate(stream);
    REQUIRE(cuMemFreeAsync(block, stream) == CUDA_SUCCESS);
    REQUIRE(free_now() == kLimit - 900 * kMiB);
    gate.open();
    REQUIRE(cuStreamSynchronize(stream) == CUDA_SUCCESS);
  }
  REQUIRE(free_now() == kLimit);
  REQUIRE(cuMemFree_v2(block) == CUDA_ERROR_INVALID_VALUE);
  REQUIRE(cuStreamDestroy_v2(stream) == CUDA_SUCCESS);
}

TEST_CASE("an allocation that needs the room of a stream-ordered free waits for it") {
  const OwnContext context;
  CUstream stream = nullptr;
  REQUIRE(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
  const CUdeviceptr block = take(900 * kMiB);
  Gate gate(stream);
  REQUIRE(cuMemFreeAsync(block, stream) == CUDA_SUCCESS);
  CUresult code = CUDA_ERROR_UNKNOWN;
  CUdeviceptr address = 0;
  std::thread waiting([&] {
    cuCtxSetCurrent(context.handle());
    code = cuMemAlloc_v2(&address, 800 * kMiB);
  });
  gate.open();
  waiting.join();
  REQUIRE(code == CUDA_SUCCESS);
  REQUIRE(cuMemFree_v2(address) == CUDA_SUCCESS);
  REQUIRE(cuStreamDestroy_v2(stream) == CUDA_SUCCESS);
}

TEST_CASE("a stream-ordered free by the per-thread export counts as well") {
  const OwnContext context;
  const CUdeviceptr block = take(900 * kMiB);
  REQUIRE(cuMemFreeAsync_ptsz(block, nullptr) == CUDA_SUCCESS);
  REQUIRE(cuStreamSynchronize_ptsz(nullptr) == CUDA_SUCCESS);
  REQUIRE(free_now() == kLimit);
}

TEST_CASE("without a context the driver's own error comes first") {
  REQUIRE(cuInit(0) == CUDA_SUCCESS);
  CUcontext before = nullptr;
  REQUIRE(cuCtxGetCurrent(&before) == CUDA_SUCCESS);
  REQUIRE(cuCtxSetCurrent(nullptr) == CUDA_SUCCESS);
  CUdeviceptr address = kBefore;
  REQUIRE(cuMemAlloc_v2(&address, kMiB) == CUDA_ERROR_INVALID_CONTEXT);
  REQUIRE(cuMemAlloc_v2(&address, 2 * kLimit) == CUDA_ERROR_INVALID_CONTEXT);
  REQUIRE(address == 0);
  REQUIRE(cuMemFree_v2(0x1000) == CUDA_ERROR_INVALID_CONTEXT);
  REQUIRE(cuCtxSetCurrent(before) == CUDA_SUCCESS);
}

TEST_CASE("each device has its own ration") {
  const OwnContext first;
  const CUdeviceptr block = take(kLimit);
  CUcontext second = nullptr;
  REQUIRE(cuCtxCreate_v2(&second, 0, 1) == CUDA_SUCCESS);
  REQUIRE(free_now() == kLimit / 2);
  refused(kLimit / 2 + 1);
  REQUIRE(cuMemFree_v2(take(kLimit / 2)) == CUDA_SUCCESS);
  REQUIRE(cuMemFree_v2(block) == CUDA_SUCCESS);  // on device 0, with device 1 current
  REQUIRE(cuCtxDestroy_v2(second) == CUDA_SUCCESS);
  REQUIRE(cuCtxSetCurrent(first.handle()) == CUDA_SUCCESS);
  REQUIRE(free_now() == kLimit);
}
