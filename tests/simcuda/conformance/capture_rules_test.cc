// Which calls a capture forbids, for which threads, and which captures a forbidden call invalidates.
#include <functional>
#include <thread>
#include <vector>

#include "tests/simcuda/conformance/capture.h"

namespace simcuda::conformance {
namespace {

constexpr auto kGlobal = CU_STREAM_CAPTURE_MODE_GLOBAL;
constexpr auto kThreadLocal = CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
constexpr auto kRelaxed = CU_STREAM_CAPTURE_MODE_RELAXED;

// Compiled by every driver since CUDA 11.
constexpr char kPtx[] = ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry nothing() { ret; }\n";

struct Unseen {
  const char *name;
  std::function<CUresult()> call;
};

// Calls that a capture cannot record. Their arguments are valid, so that only a capture can make them fail.
class UnseenCalls {
 public:
  UnseenCalls()
      : block_(device_memory(512)), idle_(new_stream(CU_STREAM_NON_BLOCKING)), event_(new_event()), page_(8192) {}

  std::vector<Unseen> all() {
    return {
        {"cuMemAlloc",
         [] {
           CUdeviceptr made = 0;
           return cuMemAlloc(&made, 512);
         }},
        {"cuMemAllocPitch",
         [] {
           CUdeviceptr made = 0;
           std::size_t pitch = 0;
           return cuMemAllocPitch(&made, &pitch, 4, 4, 4);
         }},
        {"cuMemFree of nothing", [] { return cuMemFree(0); }},
        {"cuMemHostAlloc",
         [] {
           void *made = nullptr;
           return cuMemHostAlloc(&made, 512, 0);
         }},
        {"cuMemAllocHost",
         [] {
           void *made = nullptr;
           return cuMemAllocHost(&made, 512);
         }},
        {"cuMemHostRegister",
         [this] {
           const CUresult result = cuMemHostRegister(page_.data(), 4096, 0);
           if (result == CUDA_SUCCESS) cuMemHostUnregister(page_.data());
           return result;
         }},
        {"cuStreamSynchronize", [this] { return cuStreamSynchronize(idle_); }},
        {"cuStreamQuery", [this] { return cuStreamQuery(idle_); }},
        {"cuEventQuery", [this] { return cuEventQuery(event_); }},
        {"cuEventSynchronize", [this] { return cuEventSynchronize(event_); }},
        {"cuModuleLoadData",
         [] {
           CUmodule made = nullptr;
           return cuModuleLoadData(&made, kPtx);
         }},
        {"cuMemPoolGetAttribute",
         [] {
           CUmemoryPool pool = nullptr;
           cuuint64_t bytes = 0;
           cuDeviceGetDefaultMemPool(&pool, 0);
           return cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &bytes);
         }},
        {"cuMemPoolSetAttribute",
         [] {
           CUmemoryPool pool = nullptr;
           cuuint64_t bytes = 0;
           cuDeviceGetDefaultMemPool(&pool, 0);
           return cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &bytes);
         }},
        {"cuMemPoolCreate",
         [] {
           CUmemPoolProps properties{};
           properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
           properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
           CUmemoryPool made = nullptr;
           return cuMemPoolCreate(&made, &properties);
         }},
        {"cuMemPoolTrimTo",
         [] {
           CUmemoryPool pool = nullptr;
           cuDeviceGetDefaultMemPool(&pool, 0);
           return cuMemPoolTrimTo(pool, 0);
         }},
    };
  }

  // H100, H200, driver 580.159: 0 in every mode, of the capture and of the thread, and the capture goes on.
  std::vector<Unseen> permitted() {
    return {
        {"cuMemcpyHtoD", [this] { return cuMemcpyHtoD(block_, page_.data(), 64); }},
        {"cuMemcpyDtoH", [this] { return cuMemcpyDtoH(page_.data(), block_, 64); }},
        {"cuMemsetD8", [this] { return cuMemsetD8(block_, 0, 64); }},
        {"cuMemGetInfo",
         [] {
           std::size_t free = 0, total = 0;
           return cuMemGetInfo(&free, &total);
         }},
        {"cuMemCreate",
         [] {
           CUmemAllocationProp properties{};
           properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
           properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
           CUmemGenericAllocationHandle made = 0;
           const CUresult result = cuMemCreate(&made, 2 * kMiB, &properties, 0);
           return result == CUDA_SUCCESS ? cuMemRelease(made) : result;
         }},
        {"cuEventCreate",
         [] {
           CUevent made = nullptr;
           const CUresult result = cuEventCreate(&made, CU_EVENT_DISABLE_TIMING);
           return result == CUDA_SUCCESS ? cuEventDestroy(made) : result;
         }},
        {"cuEventRecord elsewhere", [this] { return cuEventRecord(event_, idle_); }},
        {"cuStreamWaitEvent elsewhere", [this] { return cuStreamWaitEvent(idle_, event_, 0); }},
    };
  }

 private:
  CUdeviceptr block_;
  CUstream idle_;
  CUevent event_;
  std::vector<unsigned char> page_;
};

// The result of each call on a thread of that mode while a stream captures, and the capture's state afterwards.
void check_all(const CurrentContext &context, const std::vector<Unseen> &calls, CUstreamCaptureMode capture,
               CUstreamCaptureMode thread, bool same_thread, bool refused) {
  const CUstream stream = new_stream(CU_STREAM_NON_BLOCKING);
  for (const Unseen &unseen : calls) {
    INFO(unseen.name << ": capture mode " << capture << ", thread mode " << thread << ", same thread " << same_thread);
    begin(stream, capture);
    CUresult result = CUDA_ERROR_UNKNOWN;
    const auto call = [&] {
      CUstreamCaptureMode mode = thread;
      cuThreadExchangeStreamCaptureMode(&mode);
      result = unseen.call();
      cuThreadExchangeStreamCaptureMode(&mode);
    };
    if (same_thread) {
      call();
    } else {
      std::thread([&] {
        cuCtxSetCurrent(context.get());
        call();
      }).join();
    }
    CHECK(result == (refused ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : CUDA_SUCCESS));
    CHECK(end_result(stream) == (refused ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : CUDA_SUCCESS));
  }
}

void check(CUstreamCaptureMode capture, CUstreamCaptureMode thread, bool same_thread, bool refused) {
  const CurrentContext context;
  UnseenCalls calls;
  check_all(context, calls.all(), capture, thread, same_thread, refused);
  check_all(context, calls.permitted(), capture, thread, same_thread, false);
}

// H100, H200, driver 580.159: which calls are refused, with 900.
TEST_CASE("a thread with its own capture makes no call that the capture forbids") {
  for (const auto thread : {kGlobal, kThreadLocal}) {
    for (const auto capture : {kGlobal, kThreadLocal}) check(capture, thread, true, true);
  }
}

TEST_CASE("a relaxed capture forbids nothing, and a relaxed thread may make any call without invalidating a capture") {
  for (const auto thread : {kGlobal, kThreadLocal, kRelaxed}) check(kRelaxed, thread, true, false);
  for (const auto capture : {kGlobal, kThreadLocal}) check(capture, kRelaxed, true, false);
}

// H100, H200, driver 580.159: a synchronous copy is permitted.
TEST_CASE("another thread's capture forbids a call only if both are global") {
  check(kGlobal, kGlobal, false, true);
  check(kThreadLocal, kGlobal, false, false);
  check(kRelaxed, kGlobal, false, false);
  check(kGlobal, kThreadLocal, false, false);
  check(kGlobal, kRelaxed, false, false);
}

TEST_CASE("a forbidden call invalidates the captures that forbade it and no other") {
  const CurrentContext context;
  const CUstream mine = new_stream(CU_STREAM_NON_BLOCKING), relaxed = new_stream(CU_STREAM_NON_BLOCKING);
  begin(mine, kThreadLocal);
  begin(relaxed, kRelaxed);
  CUdeviceptr device = 0;
  CHECK(cuMemAlloc(&device, 512) == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  CHECK(device == 0);
  CHECK(end_result(mine) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  CHECK(end_result(relaxed) == CUDA_SUCCESS);
}

TEST_CASE("a thread's capture mode can be exchanged") {
  start_driver();
  CUstreamCaptureMode mode = kRelaxed;
  REQUIRE(cuThreadExchangeStreamCaptureMode(&mode) == CUDA_SUCCESS);
  CHECK(mode == kGlobal);
  mode = kThreadLocal;
  REQUIRE(cuThreadExchangeStreamCaptureMode(&mode) == CUDA_SUCCESS);
  CHECK(mode == kRelaxed);
  std::thread([] {
    CUstreamCaptureMode other = kRelaxed;
    cuThreadExchangeStreamCaptureMode(&other);
    CHECK(other == kGlobal);
  }).join();
  mode = kGlobal;
  REQUIRE(cuThreadExchangeStreamCaptureMode(&mode) == CUDA_SUCCESS);
  CHECK(mode == kThreadLocal);
  mode = static_cast<CUstreamCaptureMode>(3);
  CHECK(cuThreadExchangeStreamCaptureMode(&mode) == CUDA_SUCCESS);  // H200, driver 580.159: 0
  mode = kGlobal;
  REQUIRE(cuThreadExchangeStreamCaptureMode(&mode) == CUDA_SUCCESS);
  if (!simulator()) return;  // the H200's driver crashes
  CHECK(cuThreadExchangeStreamCaptureMode(nullptr) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("the legacy stream is unusable while a blocking stream captures") {
  const CurrentContext context;
  const CUdeviceptr device = device_memory(64);
  const CUstream blocking = new_stream();
  const CUevent event = new_event();
  std::atomic<int> number{0};
  const std::vector<std::function<CUresult()>> uses = {
      [&] { return cuLaunchHostFunc(nullptr, add_one, &number); },
      [&] { return cuMemsetD8(device, 1, 64); },
      [&] { return cuMemcpyDtoD(device, device, 64); },
      [&] { return cuEventRecord(event, nullptr); },
      [&] { return cuStreamWaitEvent(nullptr, event, 0); },
      [&] { return cuStreamQuery(nullptr); },
      [&] { return cuStreamSynchronize(CU_STREAM_LEGACY); },
  };
  const ThreadMode relaxed(kRelaxed);  // it conflicts in every mode
  for (const auto &use : uses) {
    begin(blocking);
    CHECK(use() == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    CHECK(end_result(blocking) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  }
  CHECK(number == 0);
}

TEST_CASE("querying the legacy stream's capture status invalidates nothing") {
  const CurrentContext context;
  const CUstream blocking = new_stream();
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  begin(blocking);
  CHECK(cuStreamIsCapturing(nullptr, &status) == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
  CHECK(cuStreamGetCaptureInfo(nullptr, &status, nullptr, nullptr, nullptr, nullptr, nullptr) ==
        CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
  CHECK(end_result(blocking) == CUDA_SUCCESS);
}

TEST_CASE("the legacy stream works normally while a non-blocking stream captures") {
  const CurrentContext context;
  const CUstream apart = new_stream(CU_STREAM_NON_BLOCKING);
  std::atomic<int> number{0};
  begin(apart);
  CHECK(cuLaunchHostFunc(nullptr, add_one, &number) == CUDA_SUCCESS);
  CHECK(end_result(apart) == CUDA_SUCCESS);
  REQUIRE(cuCtxSynchronize() == CUDA_SUCCESS);
  CHECK(number == 1);
}

TEST_CASE("a context with a capture cannot be synchronised, whatever the thread's mode") {
  const CurrentContext context;
  const CUstream stream = new_stream(CU_STREAM_NON_BLOCKING);
  const ThreadMode relaxed(kRelaxed);
  begin(stream, kRelaxed);
  CHECK(cuCtxSynchronize() == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  CHECK(end_result(stream) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  CHECK(cuCtxSynchronize() == CUDA_SUCCESS);
}

TEST_CASE("another context's capture does not affect a relaxed thread's synchronise") {
  const CurrentContext capturing;
  const CUstream stream = new_stream(CU_STREAM_NON_BLOCKING);
  begin(stream);
  {
    const CurrentContext other;
    const ThreadMode relaxed(kRelaxed);
    CHECK(cuCtxSynchronize() == CUDA_SUCCESS);
  }
  REQUIRE(cuCtxSetCurrent(capturing.get()) == CUDA_SUCCESS);
  CHECK(end_result(stream) == CUDA_SUCCESS);
}

TEST_CASE("a captured event cannot be queried, awaited or timed") {
  const CurrentContext context;
  const CUstream stream = new_stream(CU_STREAM_NON_BLOCKING);
  const CUevent event = new_event();
  const ThreadMode relaxed(kRelaxed);  // it conflicts in every mode
  for (CUresult (*ask)(CUevent) : {&cuEventQuery, &cuEventSynchronize}) {
    begin(stream);
    REQUIRE(cuEventRecord(event, stream) == CUDA_SUCCESS);
    CHECK(ask(event) == CUDA_ERROR_CAPTURED_EVENT);
    CHECK(end_result(stream) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    CHECK(ask(event) == CUDA_ERROR_INVALID_VALUE);  // H200, driver 580.159: 1
    REQUIRE(cuEventRecord(event, stream) == CUDA_SUCCESS);
    CHECK(cuEventSynchronize(event) == CUDA_SUCCESS);
  }
}

TEST_CASE("a relaxed thread may query events that were recorded before a capture") {
  const CurrentContext context;
  const CUstream stream = new_stream(CU_STREAM_NON_BLOCKING);
  const CUevent event = new_event();
  REQUIRE(cuEventRecord(event, stream) == CUDA_SUCCESS);
  REQUIRE(cuEventSynchronize(event) == CUDA_SUCCESS);
  begin(stream);
  {
    const ThreadMode relaxed(kRelaxed);
    CHECK(cuEventQuery(event) == CUDA_SUCCESS);
  }
  CHECK(end_result(stream) == CUDA_SUCCESS);
}

TEST_CASE("a stream callback and a synchronous copy cannot be captured") {
  const CurrentContext context;
  const CUstream stream = new_stream(CU_STREAM_NON_BLOCKING);
  begin(stream);
  CHECK(cuStreamAddCallback(
            stream, [](CUstream, CUresult, void *) {}, nullptr, 0) == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  CHECK(end_result(stream) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  const CUdeviceptr device = device_memory(64);
  begin(CU_STREAM_PER_THREAD);
  CHECK(cuMemsetD8_v2_ptds(device, 1, 64) == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  CHECK(end_result(CU_STREAM_PER_THREAD) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

TEST_CASE("a capture cannot free memory that it did not allocate") {
  const CurrentContext context;
  const CUdeviceptr device = device_memory(64);
  const CUstream stream = new_stream(CU_STREAM_NON_BLOCKING);
  begin(stream);
  CHECK(cuMemFreeAsync(device, stream) == CUDA_ERROR_INVALID_VALUE);
  end_result(stream);
  CHECK(cuMemFree(device) == CUDA_SUCCESS);
}

}  // namespace
}  // namespace simcuda::conformance
