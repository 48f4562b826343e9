// reach WAY [ended]: device 1 is held at work; WAY makes its stream use a block of device 0, or not. The block is freed
// and one of its size is allocated at once: prints the code of WAY, and whether the address came back while the work
// was held. Then the work ends, device 1 is held at other work, and the same is printed of another block. `ended`: WAY
// comes to its end before device 1 is held.
#include <cuda.h>
#include <sched.h>
#include <stdio.h>

#include <atomic>
#include <functional>
#include <map>
#include <string>

#include "driver/copy_abi.h"

// The simulated driver exports these and serves none of them.
extern "C" {
CUresult cuMemcpyBatchAsync(void *, void *, void *, size_t, void *, void *, size_t, void *, CUstream);
CUresult cuMemcpyBatchAsync_ptsz(void *, void *, void *, size_t, void *, void *, size_t, void *, CUstream);
CUresult cuMemcpyBatchAsync_v2(void *, void *, void *, size_t, void *, void *, size_t, CUstream);
CUresult cuMemcpyBatchAsync_v2_ptsz(void *, void *, void *, size_t, void *, void *, size_t, CUstream);
CUresult cuMemcpy3DBatchAsync(size_t, void *, void *, unsigned long long, CUstream);
CUresult cuMemcpy3DBatchAsync_ptsz(size_t, void *, void *, unsigned long long, CUstream);
CUresult cuMemcpy3DBatchAsync_v2(size_t, void *, unsigned long long, CUstream);
CUresult cuMemcpy3DBatchAsync_v2_ptsz(size_t, void *, unsigned long long, CUstream);
CUresult cuMemcpyWithAttributesAsync(CUdeviceptr, CUdeviceptr, size_t, void *, CUstream);
CUresult cuMemcpyWithAttributesAsync_ptsz(CUdeviceptr, CUdeviceptr, size_t, void *, CUstream);
CUresult cuMemcpy3DWithAttributesAsync(void *, unsigned long long, CUstream);
CUresult cuMemcpy3DWithAttributesAsync_ptsz(void *, unsigned long long, CUstream);
CUresult cuFabricCpyBatchAsync(size_t, void *, unsigned long long, CUstream);
CUresult cuFabricCpyBatchAsync_ptsz(size_t, void *, unsigned long long, CUstream);
CUresult cuMemBatchDecompressAsync(void *, size_t, unsigned int, void *, CUstream);
CUresult cuMemBatchDecompressAsync_ptsz(void *, size_t, unsigned int, void *, CUstream);
CUresult cuMemcpy3DPeerAsync(const CUDA_MEMCPY3D_PEER *, CUstream);
CUresult cuMemcpy3DPeerAsync_ptsz(const CUDA_MEMCPY3D_PEER *, CUstream);
CUresult cuMemcpy3DPeer(const CUDA_MEMCPY3D_PEER *);
CUresult cuMemcpy3DPeer_ptds(const CUDA_MEMCPY3D_PEER *);
}

namespace {

constexpr size_t kBytes = size_t{64} << 20;
constexpr size_t kUsed = 4096;

struct Hold {
  std::atomic<int> let_go{0};
  CUresult begin(CUstream stream) {
    return cuLaunchHostFunc(
        stream, [](void *hold) { static_cast<Hold *>(hold)->let_go.wait(0); }, this);
  }
  void end() {
    let_go = 1;
    let_go.notify_all();
  }
};

struct Devices {
  CUcontext first = nullptr, second = nullptr;
  CUstream stream = nullptr;  // of the second
  CUdeviceptr block = 0;      // of the first
  CUdeviceptr own = 0;        // of the second
  void *host = nullptr;
  CUarray array = nullptr;  // of the second
};

CUDA_MEMCPY2D rectangle(const Devices &at) {
  CUDA_MEMCPY2D copy{};
  copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.srcDevice = at.own;
  copy.dstDevice = at.block;
  copy.srcPitch = copy.dstPitch = copy.WidthInBytes = 64;
  copy.Height = 16;
  return copy;
}
template <class Box>
Box box(const Devices &at) {
  Box copy{};
  copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
  copy.srcDevice = at.own;
  copy.dstDevice = at.block;
  copy.srcPitch = copy.dstPitch = copy.WidthInBytes = 64;
  copy.srcHeight = copy.dstHeight = copy.Height = 4;
  copy.Depth = 4;
  return copy;
}
CUDA_MEMCPY3D_PEER peer_box(const Devices &at) {
  CUDA_MEMCPY3D_PEER copy = box<CUDA_MEMCPY3D_PEER>(at);
  copy.srcContext = at.second;
  copy.dstContext = at.first;
  return copy;
}
CUarray array_of_second() {
  CUDA_ARRAY_DESCRIPTOR shape{};
  shape.Width = 64;
  shape.Format = CU_AD_FORMAT_UNSIGNED_INT8;
  shape.NumChannels = 1;
  CUarray array = nullptr;
  cuArrayCreate(&array, &shape);
  return array;
}
CUgraphExec graph_of_second(const Devices &at) {
  CUstream other = nullptr;
  CUgraph graph = nullptr;
  CUgraphExec ready = nullptr;
  cuStreamCreate(&other, CU_STREAM_NON_BLOCKING);
  cuStreamBeginCapture(other, CU_STREAM_CAPTURE_MODE_RELAXED);
  cuMemsetD8Async(at.own, 1, kUsed, other);  // what it does is not looked at
  cuStreamEndCapture(other, &graph);
  cuGraphInstantiate(&ready, graph, 0);
  return ready;
}

using Way = std::function<CUresult(const Devices &)>;
const std::map<std::string, Way> kWays = {
    {"nothing", [](const Devices &) { return CUDA_SUCCESS; }},
    {"own_copy", [](const Devices &at) { return cuMemcpyHtoDAsync(at.own, at.host, kUsed, at.stream); }},
    {"peer_access", [](const Devices &at) { return cuCtxEnablePeerAccess(at.first, 0); }},
#define ONE(symbol, ...) {#symbol, [](const Devices &at) { return symbol(__VA_ARGS__); }},
#define QUEUED(symbol, ...) ONE(symbol, __VA_ARGS__) ONE(symbol##_ptsz, __VA_ARGS__)
#define AT_ONCE(symbol, ...) ONE(symbol, __VA_ARGS__) ONE(symbol##_ptds, __VA_ARGS__)
#define BOXED(symbol, value, ...)                     \
  {#symbol, [](const Devices &at) {                   \
     const auto copy = value;                         \
     return symbol(&copy __VA_OPT__(, ) __VA_ARGS__); \
   }},
    QUEUED(cuMemcpyAsync, at.block + 512, at.own, kUsed, at.stream)
        QUEUED(cuMemcpyPeerAsync, at.block, at.first, at.own, at.second, kUsed, at.stream)
            QUEUED(cuMemcpyHtoDAsync_v2, at.block, at.host, kUsed, at.stream)
                QUEUED(cuMemcpyDtoHAsync_v2, at.host, at.block, kUsed, at.stream)
                    QUEUED(cuMemcpyDtoDAsync_v2, at.own, at.block + kBytes - kUsed, kUsed, at.stream)
                        QUEUED(cuGraphLaunch, graph_of_second(at), at.stream)
                            QUEUED(cuMemsetD8Async, at.block, 1, kUsed, at.stream)
                                QUEUED(cuMemsetD16Async, at.block, 1, kUsed / 2, at.stream)
                                    QUEUED(cuMemsetD32Async, at.block, 1, kUsed / 4, at.stream)
                                        QUEUED(cuMemsetD2D8Async, at.block, 64, 1, 64, 16, at.stream)
                                            QUEUED(cuMemsetD2D16Async, at.block, 64, 1, 32, 16, at.stream)
                                                QUEUED(cuMemsetD2D32Async, at.block, 64, 1, 16, 16, at.stream)
    // What is in a batch is not looked at. The simulated driver serves none.
    QUEUED(cuMemcpyBatchAsync, nullptr, nullptr, nullptr, 0, nullptr, nullptr, 0, nullptr, at.stream)
        QUEUED(cuMemcpyBatchAsync_v2, nullptr, nullptr, nullptr, 0, nullptr, nullptr, 0, at.stream)
            QUEUED(cuMemcpy3DBatchAsync, 0, nullptr, nullptr, 0, at.stream)
                QUEUED(cuMemcpy3DBatchAsync_v2, 0, nullptr, 0, at.stream)
                    QUEUED(cuMemBatchDecompressAsync, nullptr, 0, 0, nullptr, at.stream)
                        QUEUED(cuMemcpyWithAttributesAsync, 0, 0, 0, nullptr, at.stream)
                            QUEUED(cuMemcpy3DWithAttributesAsync, nullptr, 0, at.stream)
                                QUEUED(cuFabricCpyBatchAsync, 0, nullptr, 0, at.stream)
    // What has returned may still be under way, and leaves its mark all the same.
    AT_ONCE(cuMemcpy, at.block, at.own, kUsed) AT_ONCE(cuMemcpyPeer, at.block, at.first, at.own, at.second, kUsed)
        AT_ONCE(cuMemcpyHtoD_v2, at.block, at.host, kUsed) AT_ONCE(cuMemcpyDtoH_v2, at.host, at.block, kUsed) AT_ONCE(
            cuMemcpyDtoD_v2, at.block, at.own, kUsed) AT_ONCE(cuMemcpyDtoA_v2, at.array, 0, at.block, 64)
            AT_ONCE(cuMemcpyAtoD_v2, at.block, at.array, 0, 64) AT_ONCE(cuMemsetD8_v2, at.block, 1, kUsed)
                AT_ONCE(cuMemsetD16_v2, at.block, 1, kUsed / 2) AT_ONCE(cuMemsetD32_v2, at.block, 1, kUsed / 4) AT_ONCE(
                    cuMemsetD2D8_v2, at.block, 64, 1, 64, 16) AT_ONCE(cuMemsetD2D16_v2, at.block, 64, 1, 32, 16)
                    AT_ONCE(cuMemsetD2D32_v2, at.block, 64, 1, 16, 16) BOXED(cuMemcpy2D_v2, rectangle(at))
                        BOXED(cuMemcpy2D_v2_ptds, rectangle(at)) BOXED(cuMemcpy2DUnaligned_v2, rectangle(at)) BOXED(
                            cuMemcpy2DUnaligned_v2_ptds, rectangle(at)) BOXED(cuMemcpy2DAsync_v2, rectangle(at),
                                                                              at.stream)
                            BOXED(cuMemcpy2DAsync_v2_ptsz, rectangle(at), at.stream) BOXED(
                                cuMemcpy3D_v2, box<CUDA_MEMCPY3D>(at)) BOXED(cuMemcpy3D_v2_ptds, box<CUDA_MEMCPY3D>(at))
                                BOXED(cuMemcpy3DAsync_v2, box<CUDA_MEMCPY3D>(at), at.stream)
                                    BOXED(cuMemcpy3DAsync_v2_ptsz, box<CUDA_MEMCPY3D>(at), at.stream)
                                        BOXED(cuMemcpy3DPeer, peer_box(at)) BOXED(cuMemcpy3DPeer_ptds, peer_box(at))
                                            BOXED(cuMemcpy3DPeerAsync, peer_box(at), at.stream)
                                                BOXED(cuMemcpy3DPeerAsync_ptsz, peer_box(at), at.stream)
#undef BOXED
#undef AT_ONCE
#undef QUEUED
#undef ONE
};

void print_reuse(const Devices &at, CUdeviceptr &block) {
  const CUdeviceptr before = block;
  cuCtxSetCurrent(at.first);
  const CUresult freed = cuMemFree(block);
  const CUresult allocated = cuMemAlloc(&block, kBytes);
  printf("free: %d, allocation: %d, reused: %d\n", static_cast<int>(freed), static_cast<int>(allocated),
         block == before);
}

// Returns once the context is idle, without a call that waits for it: Ration would learn from one what has ended.
void until_idle(CUcontext context) {
  CUevent event = nullptr;
  cuCtxSetCurrent(context);
  if (cuEventCreate(&event, 0) == CUDA_SUCCESS && cuCtxRecordEvent(context, event) == CUDA_SUCCESS) {
    while (cuEventQuery(event) == CUDA_ERROR_NOT_READY) {
      sched_yield();
    }
  }
}

}  // namespace

int main(int count, char **arguments) {
  const auto way = count > 1 ? kWays.find(arguments[1]) : kWays.end();
  Devices at;
  const bool ended = count > 2;
  Hold first;
  Hold second;
  if (way == kWays.end() || cuInit(0) != CUDA_SUCCESS || cuDevicePrimaryCtxRetain(&at.first, 0) != CUDA_SUCCESS ||
      cuDevicePrimaryCtxRetain(&at.second, 1) != CUDA_SUCCESS || cuCtxSetCurrent(at.first) != CUDA_SUCCESS ||
      cuMemAlloc(&at.block, kBytes) != CUDA_SUCCESS || cuCtxSetCurrent(at.second) != CUDA_SUCCESS ||
      cuMemAlloc(&at.own, kBytes) != CUDA_SUCCESS || cuMemHostAlloc(&at.host, kUsed, 0) != CUDA_SUCCESS ||
      cuStreamCreate(&at.stream, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS || (at.array = array_of_second()) == nullptr ||
      (!ended && first.begin(at.stream) != CUDA_SUCCESS)) {
    return 1;
  }
  const CUresult code = way->second(at);
  printf("%s\n", code == CUDA_SUCCESS ? "served" : code == CUDA_ERROR_NOT_SUPPORTED ? "not supported" : "refused");
  if (ended) {
    until_idle(at.second);
    first.begin(at.stream);
  }
  print_reuse(at, at.block);
  first.end();
  until_idle(at.second);
  CUdeviceptr other = 0;
  cuCtxSetCurrent(at.first);
  cuMemAlloc(&other, kBytes);  // takes what the first work kept
  second.begin(at.stream);
  print_reuse(at, at.block);
  second.end();
  cuCtxSetCurrent(at.second);
  printf("end: %d\n", static_cast<int>(cuCtxSynchronize()));
  return 0;
}
