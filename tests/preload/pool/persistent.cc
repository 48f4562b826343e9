// persistent CASE [other]: a kernel runs until the host stops it, which it does only after later allocations have
// succeeded; `other`: it runs in another context than the blocks'. A ration of 64 MiB, blocks of 1 MiB. CASE:
// room   blocks are freed before the kernel starts and while it runs; there is room besides
// sealed nearly all blocks are freed before the kernel starts: they are reused although it runs
#include <simcuda/simcuda.h>
#include <string.h>
#include <unistd.h>

#include <atomic>
#include <string_view>
#include <vector>

#include "verdict.h"

namespace {

using namespace preload::pool;

constexpr size_t kBlockBytes = 1 << 20;
constexpr unsigned kHangSeconds = 40;

std::atomic<int> stopped{0};
std::atomic<int> started{0};

void run_until_stopped(const simcuda_launch *) {
  started = 1;
  started.notify_all();
  stopped.wait(0);
}

class Case {
 public:
  Case(Verdict &verdict, bool elsewhere) : verdict_(verdict), elsewhere_(elsewhere) {}

  bool start() {
    return verdict_.succeeded("cuInit", cuInit(0)) &&
           verdict_.succeeded("cuDevicePrimaryCtxRetain", cuDevicePrimaryCtxRetain(&context_, 0)) &&
           verdict_.succeeded("cuCtxCreate", cuCtxCreate_v2(&other_, 0, 0)) &&
           verdict_.succeeded("cuCtxSetCurrent", cuCtxSetCurrent(context_));
  }
  void take(int blocks) {
    for (int i = 0; i < blocks && !verdict_.failed(); ++i) {
      CUdeviceptr block = 0;
      if (verdict_.succeeded("cuMemAlloc", cuMemAlloc_v2(&block, kBlockBytes))) blocks_.push_back(block);
    }
  }
  void give_back(int blocks) {
    for (int i = 0; i < blocks && !verdict_.failed(); ++i) {
      verdict_.succeeded("cuMemFree", cuMemFree_v2(blocks_.back()));
      blocks_.pop_back();
    }
  }
  void launch() {
    CUmodule module = nullptr;
    CUfunction kernel = nullptr;
    if (verdict_.succeeded("cuCtxSetCurrent", cuCtxSetCurrent(elsewhere_ ? other_ : context_)) &&
        verdict_.succeeded("cuStreamCreate", cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING)) &&
        verdict_.succeeded("cuModuleLoadData", cuModuleLoadData(&module, "any image")) &&
        verdict_.succeeded("cuModuleGetFunction", cuModuleGetFunction(&kernel, module, "run_until_stopped")) &&
        verdict_.succeeded("cuLaunchKernel", cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, stream_, nullptr, nullptr)) &&
        verdict_.succeeded("cuCtxSetCurrent", cuCtxSetCurrent(context_))) {
      started.wait(0);
    }
  }
  void end() {
    const bool ran = cuStreamQuery(stream_) == CUDA_ERROR_NOT_READY;
    stopped = 1;
    stopped.notify_all();
    verdict_.succeeded("cuStreamSynchronize", cuStreamSynchronize(stream_));
    if (!ran) verdict_.fail(kNothingTested);
    give_back(static_cast<int>(blocks_.size()));
    take(50);  // what waited for the kernel is clean now
    give_back(50);
  }

 private:
  Verdict &verdict_;
  const bool elsewhere_;
  CUcontext context_ = nullptr;
  CUcontext other_ = nullptr;
  CUstream stream_ = nullptr;
  std::vector<CUdeviceptr> blocks_;
};

}  // namespace

int main(int argc, char **argv) {
  alarm(kHangSeconds);  // a hang ends with the signal
  const std::string_view name = argc > 1 ? argv[1] : "";
  Verdict verdict;
  Case test(verdict, argc > 2 && strcmp(argv[2], "other") == 0);
  simcuda_register_kernel("run_until_stopped", run_until_stopped, nullptr, 0);
  if (!test.start()) return verdict.status();
  if (name == "room") {
    test.take(12);
    test.give_back(4);
    test.launch();
    test.give_back(4);
    test.take(40);
  } else if (name == "sealed") {
    test.take(60);
    test.give_back(48);
    test.launch();
    test.take(36);
  } else {
    return kOtherFailure;
  }
  test.end();
  dprintf(1, "%s: the allocations returned while the kernel ran\n", argv[1]);
  return verdict.status();
}
