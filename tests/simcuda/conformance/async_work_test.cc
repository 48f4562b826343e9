// Every kind of stream work runs asynchronously to the host, in every kind of stream, and is delayed by
// SIMCUDA_LATENCY_US.
#include <atomic>
#include <functional>
#include <thread>

#include "tests/simcuda/conformance/capture.h"

namespace simcuda::conformance {
namespace {

constexpr std::size_t kBytes = 1024;
constexpr unsigned char kOld = 0x11, kNew = 0x22;

struct Work {
  const char *name;
  std::function<CUresult(CUstream)> queue;
};

void fill_with_new(const simcuda_launch *launch) {
  std::fill_n(*static_cast<unsigned char **>(launch->params[0]), kBytes, kNew);
}

// Blocks to work on, and the kinds of work: each changes every byte of `target` from kOld to kNew.
class Bench {
 public:
  Bench() : target_(device_memory(kBytes)), source_(device_memory(kBytes)), pageable_(kBytes, kNew) {
    REQUIRE(cuMemHostAlloc(&host_, kBytes, 0) == CUDA_SUCCESS);
    std::fill_n(static_cast<unsigned char *>(host_), kBytes, kNew);
    rectangle_.srcMemoryType = rectangle_.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    rectangle_.srcDevice = source_;
    rectangle_.dstDevice = target_;
    rectangle_.srcPitch = rectangle_.dstPitch = rectangle_.WidthInBytes = 32;
    rectangle_.Height = kBytes / 32;
    fill(source_, kNew);
    view_ = simulator().host_view(target_);
    const std::size_t sizes[] = {sizeof view_};
    simulator().register_kernel("async_work_fill", fill_with_new, sizes, 1);  // once; later calls find it registered
    CUmodule module = nullptr;
    REQUIRE(cuModuleLoadData(&module, "image") == CUDA_SUCCESS);
    REQUIRE(cuModuleGetFunction(&kernel_, module, "async_work_fill") == CUDA_SUCCESS);
    const CUstream capturing = new_stream(CU_STREAM_NON_BLOCKING);
    begin(capturing);
    REQUIRE(cuMemsetD8Async(target_, kNew, kBytes, capturing) == CUDA_SUCCESS);
    REQUIRE(cuGraphInstantiate(&graph_, end(capturing), 0) == CUDA_SUCCESS);
  }

  void reset() { fill(target_, kOld); }
  bool all(unsigned char value) const {
    const auto *bytes = static_cast<const unsigned char *>(view_);
    return std::all_of(bytes, bytes + kBytes, [value](unsigned char byte) { return byte == value; });
  }

  std::vector<Work> kinds() {
    return {
        {"copy from pinned memory", [this](CUstream s) { return cuMemcpyHtoDAsync(target_, host_, kBytes, s); }},
        {"copy from set-aside memory",
         [this](CUstream s) { return cuMemcpyHtoDAsync(target_, pageable_.data(), kBytes, s); }},
        {"copy within the device", [this](CUstream s) { return cuMemcpyDtoDAsync(target_, source_, kBytes, s); }},
        {"copy of any kind", [this](CUstream s) { return cuMemcpyAsync(target_, source_, kBytes, s); }},
        {"copy between contexts",
         [this](CUstream s) { return cuMemcpyPeerAsync(target_, nullptr, source_, nullptr, kBytes, s); }},
        {"copy of a rectangle", [this](CUstream s) { return cuMemcpy2DAsync(&rectangle_, s); }},
        {"fill by bytes", [this](CUstream s) { return cuMemsetD8Async(target_, kNew, kBytes, s); }},
        {"fill by 16 bits", [this](CUstream s) { return cuMemsetD16Async(target_, 0x2222, kBytes / 2, s); }},
        {"fill by 32 bits", [this](CUstream s) { return cuMemsetD32Async(target_, 0x22222222u, kBytes / 4, s); }},
        {"fill of a rectangle by bytes",
         [this](CUstream s) { return cuMemsetD2D8Async(target_, 32, kNew, 32, kBytes / 32, s); }},
        {"fill of a rectangle by 16 bits",
         [this](CUstream s) { return cuMemsetD2D16Async(target_, 32, 0x2222, 16, kBytes / 32, s); }},
        {"fill of a rectangle by 32 bits",
         [this](CUstream s) { return cuMemsetD2D32Async(target_, 32, 0x22222222u, 8, kBytes / 32, s); }},
        {"kernel",
         [this](CUstream s) {
           void *params[] = {&view_};
           return cuLaunchKernel(kernel_, 1, 1, 1, 1, 1, 1, 0, s, params, nullptr);
         }},
        {"host function",
         [this](CUstream s) {
           return cuLaunchHostFunc(
               s, [](void *to) { std::fill_n(static_cast<unsigned char *>(to), kBytes, kNew); }, view_);
         }},
        {"callback",
         [this](CUstream s) {
           return cuStreamAddCallback(
               s, [](CUstream, CUresult, void *to) { std::fill_n(static_cast<unsigned char *>(to), kBytes, kNew); },
               view_, 0);
         }},
        {"graph", [this](CUstream s) { return cuGraphLaunch(graph_, s); }},
    };
  }

 private:
  void fill(CUdeviceptr block, unsigned char value) {
    std::fill_n(static_cast<unsigned char *>(simulator().host_view(block)), kBytes, value);
  }

  CUdeviceptr target_, source_;
  std::vector<unsigned char> pageable_;
  void *host_ = nullptr;
  void *view_ = nullptr;
  CUDA_MEMCPY2D rectangle_ = {};
  CUfunction kernel_ = nullptr;
  CUgraphExec graph_ = nullptr;
};

TEST_CASE("every kind of work waits for earlier work in every kind of stream") {
  if (!simulator()) return;
  const CurrentContext context;
  Bench bench;
  for (const CUstream stream :
       {new_stream(), new_stream(CU_STREAM_NON_BLOCKING), CU_STREAM_PER_THREAD, CU_STREAM_LEGACY}) {
    for (const Work &work : bench.kinds()) {
      INFO(work.name << " in stream " << stream);
      bench.reset();
      Gate gate;
      gate.hold(stream);
      REQUIRE(work.queue(stream) == CUDA_SUCCESS);
      CHECK(cuStreamQuery(stream) == CUDA_ERROR_NOT_READY);
      CHECK(bench.all(kOld));
      gate.open();
      REQUIRE(cuStreamSynchronize(stream) == CUDA_SUCCESS);
      CHECK(bench.all(kNew));
    }
  }
}

// CMakeLists.txt sets a latency longer than any test: work that has a latency stays undone.
TEST_CASE("every kind of work has the configured latency", "[.endless]") {
  REQUIRE(simulator());
  start_driver();
  CUcontext context = nullptr;  // not destroyed: that would wait
  REQUIRE(cuCtxCreate(&context, nullptr, 0, 0) == CUDA_SUCCESS);
  Bench bench;
  bench.reset();
  for (const Work &work : bench.kinds()) {
    INFO(work.name);
    const CUstream stream = new_stream(CU_STREAM_NON_BLOCKING);
    REQUIRE(work.queue(stream) == CUDA_SUCCESS);
    bool undone = true;
    for (int look = 0; look < 2000 && undone; ++look) {
      std::this_thread::yield();
      undone = cuStreamQuery(stream) == CUDA_ERROR_NOT_READY && bench.all(kOld);
    }
    CHECK(undone);
  }
}

TEST_CASE("a peer copy runs in the peer's stream, asynchronously to the host") {
  start_driver();
  int count = 0;
  REQUIRE(cuDeviceGetCount(&count) == CUDA_SUCCESS);
  if (count < 2) return;
  const CurrentContext owner(0);
  const CUdeviceptr source = device_memory(kBytes);
  const CUevent of_owner = new_event(CU_EVENT_DISABLE_TIMING);
  REQUIRE(cuMemsetD8(source, kNew, kBytes) == CUDA_SUCCESS);
  REQUIRE(cuCtxSynchronize() == CUDA_SUCCESS);
  const CurrentContext peer(1);
  int can = 0;
  REQUIRE(cuDeviceCanAccessPeer(&can, 1, 0) == CUDA_SUCCESS);
  if (can == 0) return;
  REQUIRE(cuCtxEnablePeerAccess(owner.get(), 0) == CUDA_SUCCESS);
  const CUdeviceptr target = device_memory(kBytes);
  const CUevent of_peer = new_event(CU_EVENT_DISABLE_TIMING);
  for (const bool plain : {true, false}) {
    REQUIRE(cuMemsetD8(target, kOld, kBytes) == CUDA_SUCCESS);
    const CUstream stream = new_stream(CU_STREAM_NON_BLOCKING), look = new_stream(CU_STREAM_NON_BLOCKING);
    REQUIRE(cuCtxSynchronize() == CUDA_SUCCESS);
    Gate gate;
    gate.hold(stream);
    REQUIRE((plain ? cuMemcpyAsync(target, source, kBytes, stream)
                   : cuMemcpyPeerAsync(target, peer.get(), source, owner.get(), kBytes, stream)) == CUDA_SUCCESS);
    REQUIRE(cuCtxRecordEvent(owner.get(), of_owner) == CUDA_SUCCESS);
    REQUIRE(cuCtxRecordEvent(peer.get(), of_peer) == CUDA_SUCCESS);
    CHECK(cuEventQuery(of_owner) == CUDA_SUCCESS);
    CHECK(cuEventQuery(of_peer) == CUDA_ERROR_NOT_READY);
    std::vector<unsigned char> seen(kBytes);
    REQUIRE(cuMemcpyDtoHAsync(seen.data(), target, kBytes, look) == CUDA_SUCCESS);
    REQUIRE(cuStreamSynchronize(look) == CUDA_SUCCESS);
    CHECK(seen == std::vector<unsigned char>(kBytes, kOld));
    gate.open();
    REQUIRE(cuEventSynchronize(of_peer) == CUDA_SUCCESS);
    CHECK(read_back(target, kBytes) == std::vector<unsigned char>(kBytes, kNew));
  }
  CHECK(cuCtxDisablePeerAccess(owner.get()) == CUDA_SUCCESS);
}

// H100, H200, driver 580.159: a second host function would wait for the one that holds the stream.
TEST_CASE("the per-thread default streams of threads do not wait for each other") {
  const CurrentContext context;
  const CUdeviceptr device = device_memory(4);
  std::vector<unsigned char> seen(4);
  Gate gate;
  gate.hold(CU_STREAM_PER_THREAD);
  std::vector<std::thread> threads;
  for (unsigned char i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      cuCtxSetCurrent(context.get());
      cuMemsetD8Async_ptsz(device + i, i + 1, 1, nullptr);
      cuMemcpyDtoHAsync_v2_ptsz(&seen[i], device + i, 1, nullptr);
      cuStreamSynchronize_ptsz(nullptr);
    });
  }
  for (std::thread &thread : threads) thread.join();
  CHECK(seen == counting(4));
  CHECK(cuStreamQuery(CU_STREAM_PER_THREAD) == CUDA_ERROR_NOT_READY);
}

TEST_CASE("other streams and events proceed beside a kernel that does not end") {
  if (!simulator()) return;  // a real device needs a real kernel for this
  static std::atomic<bool> enough;
  enough = false;
  simulator().register_kernel(
      "async_work_persist",
      [](const simcuda_launch *) {
        while (!enough) std::this_thread::yield();
      },
      nullptr, 0);
  const CurrentContext context;
  CUmodule module = nullptr;
  CUfunction persist = nullptr;
  REQUIRE(cuModuleLoadData(&module, "image") == CUDA_SUCCESS);
  REQUIRE(cuModuleGetFunction(&persist, module, "async_work_persist") == CUDA_SUCCESS);
  const CUstream forever = new_stream(CU_STREAM_NON_BLOCKING);
  const CUevent before = new_event(), after = new_event();
  REQUIRE(cuCtxRecordEvent(context.get(), before) == CUDA_SUCCESS);
  REQUIRE(cuLaunchKernel(persist, 1, 1, 1, 1, 1, 1, 0, forever, nullptr, nullptr) == CUDA_SUCCESS);
  REQUIRE(cuCtxRecordEvent(context.get(), after) == CUDA_SUCCESS);
  CHECK(cuEventSynchronize(before) == CUDA_SUCCESS);
  for (const CUstream stream : {new_stream(), new_stream(CU_STREAM_NON_BLOCKING), CU_STREAM_LEGACY}) {
    std::atomic<int> number{0};
    REQUIRE(cuLaunchHostFunc(stream, add_one, &number) == CUDA_SUCCESS);
    REQUIRE(cuStreamSynchronize(stream) == CUDA_SUCCESS);
    CHECK(number == 1);
  }
  CHECK(cuEventQuery(after) == CUDA_ERROR_NOT_READY);
  enough = true;
  CHECK(cuEventSynchronize(after) == CUDA_SUCCESS);
}

}  // namespace
}  // namespace simcuda::conformance
