// capture_cases: what a capture does to freed blocks, and what freed blocks do to a capture. A ration of 16 MiB.
// capture_cases beside: the same of a block beside the pool; a ration of 16 MiB and 300 bytes.
#include <algorithm>
#include <thread>
#include <vector>

#include "../programs/checks.h"
#include "capturing.h"

namespace {

using namespace preload::pool;

constexpr std::size_t kBlockBytes = 1 << 20;
constexpr int kBlocks = 16;

CUcontext context = nullptr;
Verdict verdict;

CUstream new_stream(unsigned flags = CU_STREAM_NON_BLOCKING) {
  CUstream stream = nullptr;
  verdict.succeeded("cuStreamCreate", cuStreamCreate(&stream, flags));
  return stream;
}

std::vector<CUdeviceptr> take_all(CUresult *last) {
  std::vector<CUdeviceptr> blocks;
  CUdeviceptr block = 0;
  while (blocks.size() < 64 && (*last = cuMemAlloc_v2(&block, kBlockBytes)) == CUDA_SUCCESS) blocks.push_back(block);
  return blocks;
}

void give_back(const std::vector<CUdeviceptr> &blocks) {
  for (const CUdeviceptr block : blocks) verdict.succeeded("cuMemFree", cuMemFree_v2(block));
}

// All memory can be allocated again, which takes cleaning what was freed just before.
bool all_is_served() {
  CUresult last = CUDA_SUCCESS;
  const auto blocks = take_all(&last);
  give_back(blocks);
  return last == CUDA_ERROR_OUT_OF_MEMORY && blocks.size() == kBlocks;
}

bool capture(CUstream stream) {
  return verdict.succeeded("cuStreamBeginCapture", cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
}

bool ends_well(CUstream stream) {
  CUgraph graph = nullptr;
  return cuStreamEndCapture(stream, &graph) == CUDA_SUCCESS && graph != nullptr &&
         cuGraphDestroy(graph) == CUDA_SUCCESS;
}

void free_into_a_capture(preload::Checks &checks) {
  const CUstream stream = new_stream();
  CUdeviceptr block = 0;
  verdict.succeeded("cuMemAlloc", cuMemAlloc_v2(&block, kBlockBytes));
  capture(stream);
  checks.expect("cuMemFreeAsync into a capturing stream", cuMemFreeAsync(block, stream) == CUDA_ERROR_INVALID_VALUE);
  checks.expect("the capture survives it", ends_well(stream));
  checks.expect("the block is live still", cuMemFree_v2(block) == CUDA_SUCCESS);
}

void nothing_cleans_meanwhile(preload::Checks &checks) {
  CUresult last = CUDA_SUCCESS;
  const CUstream stream = new_stream();
  give_back(take_all(&last));
  const auto blocks = take_all(&last);
  capture(stream);
  give_back(blocks);
  CUdeviceptr block = 0;
  std::thread([&] {
    verdict.succeeded("cuCtxSetCurrent", cuCtxSetCurrent(context));
    last = cuMemAlloc_v2(&block, kBlockBytes);
  }).join();
  checks.expect("with all of it freed under a capture, memory is out", last == CUDA_ERROR_OUT_OF_MEMORY);
  checks.expect("the capture survives it", ends_well(stream));
  checks.expect("all of it is back after the capture", all_is_served());
}

void a_destroyed_stream(preload::Checks &checks) {
  for (const auto destroy : {&cuStreamDestroy_v2, &cuStreamDestroy}) {
    const CUstream stream = new_stream();
    capture(stream);
    checks.expect("a stream is destroyed while it captures", destroy(stream) == CUDA_SUCCESS);
    checks.expect("it blocks nothing afterwards", all_is_served() && all_is_served());
  }
}

bool is_all_served_elsewhere() {
  bool served = false;
  std::thread([&] {
    verdict.succeeded("cuCtxSetCurrent", cuCtxSetCurrent(context));
    served = all_is_served() && all_is_served();
  }).join();
  return served;
}

// A per-thread stream cannot be queried from another thread: only the end call says that its capture is over.
void an_ended_one_of_a_living_thread(preload::Checks &checks) {
  for (const bool own_export : {false, true}) {
    const CUstream stream = own_export ? nullptr : CU_STREAM_PER_THREAD;
    const CUresult begun = own_export ? cuStreamBeginCapture_v2_ptsz(stream, CU_STREAM_CAPTURE_MODE_RELAXED)
                                      : cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED);
    CUgraph graph = nullptr;
    const CUresult ended = own_export ? cuStreamEndCapture_ptsz(stream, &graph) : cuStreamEndCapture(stream, &graph);
    checks.expect("a thread captures its own stream", begun == CUDA_SUCCESS && ended == CUDA_SUCCESS);
    checks.expect("another thread gets everything while that one lives", is_all_served_elsewhere());
    verdict.succeeded("cuGraphDestroy", cuGraphDestroy(graph));
    char parameters[16] = {};
    auto *const opaque = reinterpret_cast<CUstreamCigCaptureParams *>(parameters);
    const CUresult shown =
        own_export ? cuStreamBeginCaptureToCig_ptsz(stream, opaque) : cuStreamBeginCaptureToCig(stream, opaque);
    const CUresult over = own_export ? cuStreamEndCaptureToCig_ptsz(stream) : cuStreamEndCaptureToCig(stream);
    checks.expect("a thread captures its own stream for a graphics interface",
                  shown == CUDA_SUCCESS && over == CUDA_SUCCESS);
    checks.expect("another thread gets everything while that one lives", is_all_served_elsewhere());
  }
}

// The driver answers WRONG_THREAD and drops the capture all the same.
void an_end_in_the_wrong_thread(preload::Checks &checks) {
  const CUstream stream = new_stream();
  capture(stream);
  CUresult ended = CUDA_SUCCESS;
  std::thread([&] {
    CUgraph graph = nullptr;
    verdict.succeeded("cuCtxSetCurrent", cuCtxSetCurrent(context));
    ended = cuStreamEndCapture(stream, &graph);
  }).join();
  checks.expect("an end in the wrong thread is refused", ended == CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
  checks.expect("what it dropped blocks nothing", all_is_served() && all_is_served());
}

void a_context_that_went(preload::Checks &checks) {
  CUcontext made = nullptr;
  verdict.succeeded("cuCtxCreate", cuCtxCreate_v2(&made, 0, 0));
  capture(new_stream());
  verdict.succeeded("cuCtxDestroy", cuCtxDestroy_v2(made));
  verdict.succeeded("cuCtxSetCurrent", cuCtxSetCurrent(context));
  checks.expect("a capture in a context that went blocks nothing", all_is_served() && all_is_served());
}

// The last 300 bytes are less than the pool's unit, so that only the driver can serve them.
void a_block_beside_the_pool(preload::Checks &checks) {
  constexpr std::size_t kRest = 300;
  CUresult last = CUDA_SUCCESS;
  const auto blocks = take_all(&last);
  CUdeviceptr beside = 0;
  verdict.succeeded("cuMemAlloc", cuMemAlloc_v2(&beside, kRest));
  const CUstream stream = new_stream();
  capture(stream);
  verdict.succeeded("cuMemFree in a capture", cuMemFree_v2(beside));
  verdict.succeeded("cuMemAlloc in a capture", cuMemAlloc_v2(&beside, kRest));
  checks.expect("the capture survives both", ends_well(stream));
  verdict.succeeded("cuMemFree", cuMemFree_v2(beside));
  give_back(blocks);
}

}  // namespace

int main(int argc, char **) {
  preload::Checks checks;
  if (!verdict.succeeded("cuInit", cuInit(0)) ||
      !verdict.succeeded("cuDevicePrimaryCtxRetain", cuDevicePrimaryCtxRetain(&context, 0)) ||
      !verdict.succeeded("cuCtxSetCurrent", cuCtxSetCurrent(context))) {
    return verdict.status();
  }
  if (argc == 2) {
    a_block_beside_the_pool(checks);
    return verdict.failed() ? verdict.status() : checks.done();
  }
  for (const auto test : {free_into_a_capture, nothing_cleans_meanwhile, a_destroyed_stream,
                          an_ended_one_of_a_living_thread, an_end_in_the_wrong_thread, a_context_that_went}) {
    test(checks);
  }
  const int status = checks.done();
  return verdict.failed() ? verdict.status() : status;
}
