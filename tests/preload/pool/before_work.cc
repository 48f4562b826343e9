// before_work WAY: frees a small block on an idle device, then submits work by WAY. Prints how often the driver was
// asked for a fence by that call, before the work.
#include <cuda.h>
#include <simcuda/simcuda.h>
#include <stdio.h>

#include <functional>
#include <map>
#include <string>

// The simulated driver exports these and serves none of them.
extern "C" {
CUresult cuStreamWaitValue32_v2(CUstream, CUdeviceptr, unsigned int, unsigned int);
CUresult cuStreamWaitValue32_v2_ptsz(CUstream, CUdeviceptr, unsigned int, unsigned int);
CUresult cuStreamWaitValue64_v2(CUstream, CUdeviceptr, unsigned long, unsigned int);
CUresult cuStreamWaitValue64_v2_ptsz(CUstream, CUdeviceptr, unsigned long, unsigned int);
CUresult cuStreamBatchMemOp_v2(CUstream, unsigned int, void *, unsigned int);
CUresult cuStreamBatchMemOp_v2_ptsz(CUstream, unsigned int, void *, unsigned int);
}

namespace {

void nothing(void *) {}
void nothing_more(CUstream, CUresult, void *) {}

// Most of them are refused: the fence comes before the driver is asked.
const std::map<std::string, std::function<void()>> kWays = {
#define ONE(symbol, ...) {#symbol, [] { symbol(__VA_ARGS__); }},
#define BOTH(symbol, ...) ONE(symbol, __VA_ARGS__) ONE(symbol##_ptsz, __VA_ARGS__)
    BOTH(cuLaunchKernel, nullptr, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr)
        BOTH(cuLaunchKernelEx, nullptr, nullptr, nullptr, nullptr)
            BOTH(cuLaunchCooperativeKernel, nullptr, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr) BOTH(
                cuLaunchHostFunc, nullptr, nothing, nullptr) BOTH(cuLaunchHostFunc_v2, nullptr, nothing, nullptr, 0)
                BOTH(cuStreamAddCallback, nullptr, nothing_more, nullptr, 0)
                    BOTH(cuStreamWaitValue32_v2, nullptr, 0, 0, 0) BOTH(cuStreamWaitValue64_v2, nullptr, 0, 0, 0)
                        BOTH(cuStreamBatchMemOp_v2, nullptr, 0, nullptr, 0) BOTH(cuMemsetD8Async, 0, 0, 0, nullptr)
#undef BOTH
#undef ONE
                            {"cuMemGetInfo", [] {
                               size_t free_bytes = 0, total = 0;
                               cuMemGetInfo(&free_bytes, &total);
                             }}};

}  // namespace

int main(int argc, char **argv) {
  const auto way = kWays.find(argc > 1 ? argv[1] : "");
  CUcontext context = nullptr;
  if (way == kWays.end() || cuInit(0) != CUDA_SUCCESS || cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS ||
      cuCtxSetCurrent(context) != CUDA_SUCCESS) {
    return 2;
  }
  CUdeviceptr block = 0, kept = 0;
  const CUresult kept_answer = cuMemAlloc(&kept, 1 << 20), answer = cuMemAlloc(&block, 1 << 20);
  const CUresult freed = cuMemFree(block);
  const unsigned long long before = simcuda_calls("cuCtxRecordEvent");
  way->second();
  const unsigned long long first = simcuda_calls("cuCtxRecordEvent");
  way->second();  // nothing was freed since
  printf("blocks: %d %d %d\nfences: %llu, then %llu\n", kept_answer, answer, freed, first - before,
         simcuda_calls("cuCtxRecordEvent") - first);
  return 0;
}
