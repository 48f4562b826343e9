// Green contexts.
#include <algorithm>
#include <vector>

#include "tests/simcuda/conformance/capture.h"

namespace simcuda::conformance {
namespace {

CUdevResourceDesc all_of(CUdevice device) {
  CUdevResource resource = {};
  CUdevResourceDesc desc = nullptr;
  REQUIRE(cuDeviceGetDevResource(device, &resource, CU_DEV_RESOURCE_TYPE_SM) == CUDA_SUCCESS);
  REQUIRE(cuDevResourceGenerateDesc(&desc, &resource, 1) == CUDA_SUCCESS);
  return desc;
}

// A green context on device 0, made current; the primary context lives at least as long.
class Green {
 public:
  Green() {
    start_driver();
    REQUIRE(cuDevicePrimaryCtxRetain(&primary_, 0) == CUDA_SUCCESS);
    REQUIRE(cuGreenCtxCreate(&handle_, all_of(0), 0, CU_GREEN_CTX_DEFAULT_STREAM) == CUDA_SUCCESS);
    REQUIRE(cuCtxFromGreenCtx(&context_, handle_) == CUDA_SUCCESS);
    REQUIRE(cuCtxPushCurrent(context_) == CUDA_SUCCESS);
  }
  ~Green() {
    CUcontext popped = nullptr;
    destroy();
    cuCtxPopCurrent(&popped);
    cuDevicePrimaryCtxRelease(0);
  }
  Green(const Green &) = delete;
  Green &operator=(const Green &) = delete;
  void destroy() {
    if (handle_ != nullptr) CHECK(cuGreenCtxDestroy(handle_) == CUDA_SUCCESS);
    handle_ = nullptr;
  }
  CUgreenCtx handle() const { return handle_; }
  CUcontext context() const { return context_; }
  CUcontext primary() const { return primary_; }

 private:
  CUgreenCtx handle_ = nullptr;
  CUcontext context_ = nullptr;
  CUcontext primary_ = nullptr;
};

CUstream green_stream(CUgreenCtx green) {
  CUstream stream = nullptr;
  REQUIRE(cuGreenCtxStreamCreate(&stream, green, CU_STREAM_NON_BLOCKING, 0) == CUDA_SUCCESS);
  return stream;
}

TEST_CASE("a green context keeps the primary context alive") {
  start_driver();
  CUgreenCtx green = nullptr;
  unsigned flags = 0;
  int active = -1;
  REQUIRE(cuGreenCtxCreate(&green, all_of(0), 0, CU_GREEN_CTX_DEFAULT_STREAM) == CUDA_SUCCESS);
  REQUIRE(cuDevicePrimaryCtxGetState(0, &flags, &active) == CUDA_SUCCESS);
  CHECK(active == 1);
  CUcontext primary = nullptr;
  REQUIRE(cuDevicePrimaryCtxRetain(&primary, 0) == CUDA_SUCCESS);
  REQUIRE(cuDevicePrimaryCtxRelease(0) == CUDA_SUCCESS);
  REQUIRE(cuDevicePrimaryCtxGetState(0, &flags, &active) == CUDA_SUCCESS);
  CHECK(active == 1);
  REQUIRE(cuGreenCtxDestroy(green) == CUDA_SUCCESS);
  REQUIRE(cuDevicePrimaryCtxGetState(0, &flags, &active) == CUDA_SUCCESS);
  CHECK(active == 0);
}

TEST_CASE("memory allocated while a green context is current belongs to the primary context and outlives it") {
  Green green;
  const CUdeviceptr device = device_memory(4096);
  CUcontext owner = nullptr;
  REQUIRE(cuPointerGetAttribute(&owner, CU_POINTER_ATTRIBUTE_CONTEXT, device) == CUDA_SUCCESS);
  CHECK(owner == green.primary());
  green.destroy();
  REQUIRE(cuCtxPushCurrent(green.primary()) == CUDA_SUCCESS);
  REQUIRE(cuMemsetD8(device, 5, 4096) == CUDA_SUCCESS);
  CHECK(read_back(device, 4096) == std::vector<unsigned char>(4096, 5));
  CHECK(cuMemFree(device) == CUDA_SUCCESS);
  CUcontext popped = nullptr;
  REQUIRE(cuCtxPopCurrent(&popped) == CUDA_SUCCESS);
}

TEST_CASE("synchronising the primary context covers its green contexts, a green one covers only itself") {
  const Green one, other;
  const CUstream stream = green_stream(one.handle());
  const CUevent of_primary = new_event(), of_green = new_event(), of_other = new_event();
  Gate gate;
  gate.hold(stream);
  REQUIRE(cuCtxRecordEvent(one.primary(), of_primary) == CUDA_SUCCESS);
  REQUIRE(cuGreenCtxRecordEvent(one.handle(), of_green) == CUDA_SUCCESS);
  REQUIRE(cuCtxRecordEvent(other.context(), of_other) == CUDA_SUCCESS);
  CHECK(cuCtxSynchronize() == CUDA_SUCCESS);  // of the other context, which is current
  CHECK(cuEventQuery(of_primary) == CUDA_ERROR_NOT_READY);
  CHECK(cuEventQuery(of_green) == CUDA_ERROR_NOT_READY);
  CHECK(cuEventQuery(of_other) == CUDA_SUCCESS);
  gate.open();
  CHECK(cuCtxSynchronize_v2(one.primary()) == CUDA_SUCCESS);
  CHECK(cuStreamQuery(stream) == CUDA_SUCCESS);
  CHECK(cuEventQuery(of_primary) == CUDA_SUCCESS);
  CHECK(cuEventQuery(of_green) == CUDA_SUCCESS);
}

// H100, H200, driver 580.159: a second host function would wait for the one that holds the stream.
TEST_CASE("a wait of the primary context delays its green contexts, too, and not the other way round") {
  const Green green, other;
  const CurrentContext elsewhere;
  const CUstream held = new_stream();
  const CUevent event = new_event();
  Gate gate;
  gate.hold(held);
  REQUIRE(cuEventRecord(event, held) == CUDA_SUCCESS);
  CUcontext popped = nullptr;
  REQUIRE(cuCtxPushCurrent(green.primary()) == CUDA_SUCCESS);
  const CUstream plain = new_stream(), greens = green_stream(green.handle());
  const CUdeviceptr device = device_memory(64);
  REQUIRE(cuMemsetD8(device, 0, 64) == CUDA_SUCCESS);
  REQUIRE(cuCtxSynchronize() == CUDA_SUCCESS);
  REQUIRE(cuGreenCtxWaitEvent(green.handle(), event) == CUDA_SUCCESS);
  REQUIRE(cuMemsetD8Async(device, 1, 32, greens) == CUDA_SUCCESS);
  CHECK(stays([&] { return cuStreamQuery(greens) == CUDA_ERROR_NOT_READY; }));
  CHECK(runs_through(plain));
  REQUIRE(cuCtxWaitEvent(green.primary(), event) == CUDA_SUCCESS);
  const CUstream later = green_stream(other.handle());
  REQUIRE(cuMemsetD8Async(device + 32, 2, 32, later) == CUDA_SUCCESS);
  CHECK(stays([&] { return cuStreamQuery(later) == CUDA_ERROR_NOT_READY; }));
  gate.open();
  REQUIRE(cuCtxSynchronize() == CUDA_SUCCESS);
  std::vector<unsigned char> expected(64, 1);
  std::fill(expected.begin() + 32, expected.end(), 2);
  CHECK(read_back(device, 64) == expected);
  REQUIRE(cuCtxPopCurrent(&popped) == CUDA_SUCCESS);
}

TEST_CASE("a green context's streams return their contexts") {
  const Green green;
  const CUstream made = green_stream(green.handle()), usual = new_stream();
  REQUIRE(cuCtxPushCurrent(green.primary()) == CUDA_SUCCESS);
  const CUstream plain = new_stream();
  CUcontext popped = nullptr;
  REQUIRE(cuCtxPopCurrent(&popped) == CUDA_SUCCESS);
  for (const CUstream stream : {made, usual, CU_STREAM_LEGACY}) {
    CUcontext context = nullptr;
    CUgreenCtx seen = nullptr, seen_2 = nullptr;
    REQUIRE(cuStreamGetGreenCtx(stream, &seen) == CUDA_SUCCESS);
    CHECK(seen == green.handle());
    REQUIRE(cuStreamGetCtx(stream, &context) == CUDA_SUCCESS);
    CHECK(context == green.context());
    REQUIRE(cuStreamGetCtx_v2(stream, &context, &seen_2) == CUDA_SUCCESS);
    CHECK(context == green.primary());
    CHECK(seen_2 == green.handle());
  }
  CUgreenCtx none = green.handle();
  REQUIRE(cuStreamGetGreenCtx(plain, &none) == CUDA_SUCCESS);
  CHECK(none == nullptr);
  CHECK(cuStreamQuery(CU_STREAM_PER_THREAD) == CUDA_ERROR_INVALID_HANDLE);
  CUstream refused = nullptr;
  CHECK(cuGreenCtxStreamCreate(&refused, green.handle(), CU_STREAM_DEFAULT, 0) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("a green context has one handle, which differs from the primary context's") {
  const Green green;
  CUdevice device = -1;
  REQUIRE(cuCtxGetDevice(&device) == CUDA_SUCCESS);
  CHECK(device == 0);
  CHECK(green.context() != green.primary());
  // H100, H200, driver 580.159
  CHECK(reinterpret_cast<void *>(green.context()) == reinterpret_cast<void *>(green.handle()));
  CHECK(cuCtxDestroy(green.context()) == CUDA_ERROR_INVALID_CONTEXT);
}

TEST_CASE("the handles of a destroyed green context return CONTEXT_IS_DESTROYED") {
  if (!simulator()) return;  // a real driver may crash on a dead handle
  Green green;
  const CUgreenCtx handle = green.handle();
  const CUstream stream = green_stream(handle);
  Gate gate;
  gate.open();
  gate.hold(stream);
  green.destroy();
  CHECK(cuGreenCtxDestroy(handle) == CUDA_ERROR_CONTEXT_IS_DESTROYED);
  CHECK(cuCtxSynchronize() == CUDA_ERROR_CONTEXT_IS_DESTROYED);
  REQUIRE(cuCtxPushCurrent(green.primary()) == CUDA_SUCCESS);
  CHECK(cuStreamSynchronize(stream) == CUDA_ERROR_CONTEXT_IS_DESTROYED);
  CHECK(cuStreamDestroy(stream) == CUDA_ERROR_CONTEXT_IS_DESTROYED);
  CUcontext popped = nullptr;
  REQUIRE(cuCtxPopCurrent(&popped) == CUDA_SUCCESS);
}

TEST_CASE("a reset of the device destroys its green contexts") {
  if (!simulator()) return;
  start_driver();
  CUgreenCtx green = nullptr;
  CUcontext context = nullptr;
  int active = -1;
  REQUIRE(cuGreenCtxCreate(&green, all_of(0), 0, CU_GREEN_CTX_DEFAULT_STREAM) == CUDA_SUCCESS);
  REQUIRE(cuDevicePrimaryCtxReset(0) == CUDA_SUCCESS);
  CHECK(cuCtxFromGreenCtx(&context, green) == CUDA_ERROR_CONTEXT_IS_DESTROYED);
  CHECK(cuGreenCtxDestroy(green) == CUDA_ERROR_CONTEXT_IS_DESTROYED);
  REQUIRE(cuDevicePrimaryCtxRetain(&context, 0) == CUDA_SUCCESS);
  REQUIRE(cuDevicePrimaryCtxRelease(0) == CUDA_SUCCESS);
  unsigned flags = 0;
  REQUIRE(cuDevicePrimaryCtxGetState(0, &flags, &active) == CUDA_SUCCESS);
  CHECK(active == 0);
}

TEST_CASE("a capture in a green context does not prevent the primary context's event") {
  const Green green;
  const CUstream stream = green_stream(green.handle());
  const CUevent event = new_event();
  begin(stream);
  CHECK(cuCtxRecordEvent(green.primary(), event) == CUDA_SUCCESS);  // H100, H200, driver 580.159: 0
  CHECK(end_result(stream) == CUDA_SUCCESS);
}

TEST_CASE("multiprocessors are split evenly, once") {
  start_driver();
  int devices = 0;
  REQUIRE(cuDeviceGetCount(&devices) == CUDA_SUCCESS);
  CUdevResource whole = {}, parts[4] = {}, rest = {};
  REQUIRE(cuDeviceGetDevResource(0, &whole, CU_DEV_RESOURCE_TYPE_SM) == CUDA_SUCCESS);
  CHECK(cuDeviceGetDevResource(0, &whole, CU_DEV_RESOURCE_TYPE_INVALID) == CUDA_ERROR_INVALID_RESOURCE_TYPE);
  unsigned groups = 0;
  REQUIRE(cuDevSmResourceSplitByCount(nullptr, &groups, &whole, nullptr, 0, 16) == CUDA_SUCCESS);
  CHECK(groups == whole.sm.smCount / 16);
  groups = 4;
  REQUIRE(cuDevSmResourceSplitByCount(parts, &groups, &whole, &rest, 0, 10) == CUDA_SUCCESS);
  CHECK(groups == 4);
  CHECK(parts[3].sm.smCount == 16);  // rounded up to a partition
  CHECK(rest.sm.smCount == whole.sm.smCount - 64);
  CHECK(cuDevSmResourceSplitByCount(nullptr, &groups, parts, nullptr, 0, 8) ==
        CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION);
  CUdevResourceDesc desc = nullptr;
  CUgreenCtx green = nullptr;
  CUdevResource own = {};
  REQUIRE(cuDevResourceGenerateDesc(&desc, parts, 2) == CUDA_SUCCESS);
  CHECK(cuGreenCtxCreate(&green, desc, 1, CU_GREEN_CTX_DEFAULT_STREAM) ==
        (devices == 1 ? CUDA_ERROR_INVALID_DEVICE : CUDA_ERROR_INVALID_VALUE));
  CHECK(cuGreenCtxCreate(&green, desc, 0, 0) == CUDA_ERROR_INVALID_VALUE);
  REQUIRE(cuGreenCtxCreate(&green, desc, 0, CU_GREEN_CTX_DEFAULT_STREAM) == CUDA_SUCCESS);
  REQUIRE(cuGreenCtxGetDevResource(green, &own, CU_DEV_RESOURCE_TYPE_SM) == CUDA_SUCCESS);
  CHECK(own.sm.smCount == 32);
  CHECK(cuGreenCtxDestroy(green) == CUDA_SUCCESS);
  const CUdevResource mixed[] = {whole, parts[0]};
  // H100, H200, driver 580.159: the whole and a part of it
  CHECK(cuDevResourceGenerateDesc(&desc, const_cast<CUdevResource *>(mixed), 2) == CUDA_SUCCESS);
}

}  // namespace
}  // namespace simcuda::conformance
