// reach WAY [synchronous]: device 1 is held at work; WAY makes its stream use a block of device 0, or not. The block is
// freed and one of its size is allocated at once: prints the code of WAY, and whether the address came back while the
// work was held.
#include <cuda.h>
#include <stdio.h>

#include <atomic>
#include <functional>
#include <map>
#include <string>

namespace {

constexpr size_t kBytes = size_t{64} << 20;
constexpr size_t kUsed = 4096;
std::atomic<int> let_go{0};

void until_let_go(void *) {
  let_go.wait(0);
}

struct Devices {
  CUcontext first = nullptr, second = nullptr;
  CUstream stream = nullptr;  // of the second
  CUdeviceptr block = 0;      // of the first
  CUdeviceptr own = 0;        // of the second
  void *host = nullptr;
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
CUDA_MEMCPY3D box(const Devices &at) {
  CUDA_MEMCPY3D copy{};
  copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
  copy.srcDevice = at.own;
  copy.dstDevice = at.block;
  copy.srcPitch = copy.dstPitch = copy.WidthInBytes = 64;
  copy.srcHeight = copy.dstHeight = copy.Height = 4;
  copy.Depth = 4;
  return copy;
}
CUresult launch_graph(const Devices &at, bool per_thread) {
  CUstream other = nullptr;
  CUgraph graph = nullptr;
  CUgraphExec ready = nullptr;
  cuStreamCreate(&other, CU_STREAM_NON_BLOCKING);
  cuStreamBeginCapture(other, CU_STREAM_CAPTURE_MODE_RELAXED);
  cuMemsetD8Async(at.own, 1, kUsed, other);  // what it does is not looked at
  cuStreamEndCapture(other, &graph);
  const CUresult made = cuGraphInstantiate(&ready, graph, 0);
  return made != CUDA_SUCCESS ? made
         : per_thread         ? cuGraphLaunch_ptsz(ready, at.stream)
                              : cuGraphLaunch(ready, at.stream);
}

using Way = std::function<CUresult(const Devices &)>;
const std::map<std::string, Way> kWays = {
    {"nothing", [](const Devices &) { return CUDA_SUCCESS; }},
    {"own_copy", [](const Devices &at) { return cuMemcpyHtoDAsync(at.own, at.host, kUsed, at.stream); }},
    {"peer_access", [](const Devices &at) { return cuCtxEnablePeerAccess(at.first, 0); }},
    {"graph", [](const Devices &at) { return launch_graph(at, false); }},
    {"graph_ptsz", [](const Devices &at) { return launch_graph(at, true); }},
#define WAY(symbol, ...) {#symbol, [](const Devices &at) { return symbol(__VA_ARGS__); }},
#define BOTH(symbol, ...) WAY(symbol, __VA_ARGS__) WAY(symbol##_ptsz, __VA_ARGS__)
    BOTH(cuMemcpyAsync, at.block + 512, at.own, kUsed, at.stream)
    BOTH(cuMemcpyPeerAsync, at.block, at.first, at.own, at.second, kUsed, at.stream)
    BOTH(cuMemcpyHtoDAsync_v2, at.block, at.host, kUsed, at.stream)
    BOTH(cuMemcpyDtoHAsync_v2, at.host, at.block, kUsed, at.stream)
    BOTH(cuMemcpyDtoDAsync_v2, at.own, at.block + kBytes - kUsed, kUsed, at.stream)
#undef BOTH
#undef WAY
    {"cuMemcpy2DAsync_v2",
     [](const Devices &at) {
       const auto copy = rectangle(at);
       return cuMemcpy2DAsync_v2(&copy, at.stream);
     }},
    {"cuMemcpy2DAsync_v2_ptsz",
     [](const Devices &at) {
       const auto copy = rectangle(at);
       return cuMemcpy2DAsync_v2_ptsz(&copy, at.stream);
     }},
    {"cuMemcpy3DAsync_v2",
     [](const Devices &at) {
       const auto copy = box(at);
       return cuMemcpy3DAsync_v2(&copy, at.stream);
     }},
    {"cuMemcpy3DAsync_v2_ptsz",
     [](const Devices &at) {
       const auto copy = box(at);
       return cuMemcpy3DAsync_v2_ptsz(&copy, at.stream);
     }},
    // Copies between devices that do not wait for the host.
    {"cuMemcpy", [](const Devices &at) { return cuMemcpy(at.block, at.own, kUsed); }},
    {"cuMemcpy_ptds", [](const Devices &at) { return cuMemcpy_ptds(at.block, at.own, kUsed); }},
    {"cuMemcpyDtoD_v2", [](const Devices &at) { return cuMemcpyDtoD_v2(at.block, at.own, kUsed); }},
    {"cuMemcpyDtoD_v2_ptds", [](const Devices &at) { return cuMemcpyDtoD_v2_ptds(at.block, at.own, kUsed); }},
    {"cuMemcpyPeer", [](const Devices &at) { return cuMemcpyPeer(at.block, at.first, at.own, at.second, kUsed); }},
    {"cuMemcpyPeer_ptds",
     [](const Devices &at) { return cuMemcpyPeer_ptds(at.block, at.first, at.own, at.second, kUsed); }},
};

}  // namespace

int main(int count, char **arguments) {
  const auto way = count > 1 ? kWays.find(arguments[1]) : kWays.end();
  Devices at;
  if (way == kWays.end() || cuInit(0) != CUDA_SUCCESS || cuDevicePrimaryCtxRetain(&at.first, 0) != CUDA_SUCCESS ||
      cuDevicePrimaryCtxRetain(&at.second, 1) != CUDA_SUCCESS || cuCtxSetCurrent(at.first) != CUDA_SUCCESS ||
      cuMemAlloc(&at.block, kBytes) != CUDA_SUCCESS || cuCtxSetCurrent(at.second) != CUDA_SUCCESS ||
      cuMemAlloc(&at.own, kBytes) != CUDA_SUCCESS || cuMemHostAlloc(&at.host, kUsed, 0) != CUDA_SUCCESS ||
      cuStreamCreate(&at.stream, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS ||
      cuLaunchHostFunc(at.stream, until_let_go, nullptr) != CUDA_SUCCESS) {
    return 1;
  }
  printf("code: %d\n", static_cast<int>(way->second(at)));
  CUdeviceptr again = 0;
  cuCtxSetCurrent(at.first);
  const CUresult freed = cuMemFree(at.block);
  const CUresult allocated = cuMemAlloc(&again, kBytes);
  printf("free: %d, allocation: %d, reused: %d\n", static_cast<int>(freed), static_cast<int>(allocated),
         again == at.block);
  let_go = 1;
  let_go.notify_all();
  cuCtxSetCurrent(at.second);
  printf("end: %d\n", static_cast<int>(cuCtxSynchronize()));
  return 0;
}
