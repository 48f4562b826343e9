// graph_ways BUILD INSTANTIATE RUN: a graph that allocates more than the limit of 256 MiB, by one way to build, one to
// instantiate and one to run it, after a small one that shows when the driver takes the memory. Prints the codes, and
// what graphs hold of the device then. Other words for RUN show what a destroy, an update, and a trim change.
#ifndef __CUDA_API_VERSION_INTERNAL
#define __CUDA_API_VERSION_INTERNAL
#endif
#include <cuda.h>
#include <stdio.h>
#include <string.h>

#include <vector>

#include "simcuda/simcuda.h"

namespace {

constexpr size_t kMiB = size_t{1} << 20;

CUstream stream = nullptr;
const char *build = nullptr;
const char *inst = nullptr;
const char *run = nullptr;

bool is(const char *word, const char *other) {
  return strcmp(word, other) == 0;
}

void say(const char *what, long long figure) {
  printf("%s %lld\n", what, figure);
}

CUgraph captured(size_t bytes, bool free) {
  CUgraph graph = nullptr;
  CUdeviceptr block = 0;
  cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED);
  cuMemAllocAsync(&block, bytes, stream);
  cuMemsetD8Async(block, 1, bytes, stream);
  if (free) cuMemFreeAsync(block, stream);
  cuStreamEndCapture(stream, &graph);
  return graph;
}

// The last node of a block that is not freed where `free` is false.
CUgraph built(size_t bytes, bool free) {
  if (is(build, "captured")) return captured(bytes, free);
  CUgraph graph = nullptr;
  CUgraphNode node = nullptr;
  cuGraphCreate(&graph, 0);
  CUmemPoolProps props = {};
  props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  props.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  CUdeviceptr block = 0;
  if (is(build, "cuGraphAddMemAllocNode")) {
    CUDA_MEM_ALLOC_NODE_PARAMS params = {};
    params.poolProps = props;
    params.bytesize = bytes;
    cuGraphAddMemAllocNode(&node, graph, nullptr, 0, &params);
    block = params.dptr;
  } else {
    CUgraphNodeParams params = {};
    params.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC;
    params.alloc.poolProps = props;
    params.alloc.bytesize = bytes;
    if (is(build, "cuGraphAddNode")) cuGraphAddNode(&node, graph, nullptr, 0, &params);
    if (is(build, "cuGraphAddNode_v2")) cuGraphAddNode_v2(&node, graph, nullptr, nullptr, 0, &params);
    if (is(build, "cuGraphAddNode_v3")) cuGraphAddNode_v3(&node, graph, nullptr, nullptr, 0, &params);
    block = params.alloc.dptr;
  }
  if (free) cuGraphAddMemFreeNode(&node, graph, &node, 1, block);
  return graph;
}

CUresult instantiate(CUgraphExec *exec, CUgraph graph) {
  CUDA_GRAPH_INSTANTIATE_PARAMS params = {};
  params.flags = is(inst, "upload") ? CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD : 0;
  params.hUploadStream = stream;
  if (is(inst, "cuGraphInstantiate")) return cuGraphInstantiate(exec, graph, nullptr, nullptr, 0);
  if (is(inst, "cuGraphInstantiate_v2")) return cuGraphInstantiate_v2(exec, graph, nullptr, nullptr, 0);
  if (is(inst, "cuGraphInstantiateWithFlags")) return cuGraphInstantiateWithFlags(exec, graph, 0);
  if (is(inst, "cuGraphInstantiateWithParams_ptsz")) return cuGraphInstantiateWithParams_ptsz(exec, graph, &params);
  return cuGraphInstantiateWithParams(exec, graph, &params);
}

CUresult launch(CUgraphExec exec) {
  if (is(run, "cuGraphUpload")) return cuGraphUpload(exec, stream);
  if (is(run, "cuGraphUpload_ptsz")) return cuGraphUpload_ptsz(exec, stream);
  if (is(run, "cuGraphLaunch_ptsz")) return cuGraphLaunch_ptsz(exec, stream);
  return cuGraphLaunch(exec, stream);
}

// A handle that a destroyed graph with memory had, and one without memory gets.
void reuse_the_handle() {
  CUgraphExec with_memory = nullptr;
  instantiate(&with_memory, built(192 * kMiB, true));
  cuGraphExecDestroy(with_memory);
  CUgraph plain = nullptr;
  CUgraphNode node = nullptr;
  cuGraphCreate(&plain, 0);
  cuGraphAddEmptyNode(&node, plain, nullptr, 0);
  CUdeviceptr block = 0;
  cuMemAlloc_v2(&block, 128 * kMiB);
  CUgraphExec exec = nullptr;
  std::vector<CUgraphExec> others;
  do {
    cuGraphInstantiateWithFlags(&exec, plain, 0);
    others.push_back(exec);
  } while (exec != with_memory && others.size() < 1000);
  say("same handle", exec == with_memory);
  say("launched", cuGraphLaunch(exec, stream));
}

void update() {
  CUgraphExec exec = nullptr;
  instantiate(&exec, built(64 * kMiB, false));
  const CUgraph larger = built(512 * kMiB, false);
  if (is(run, "cuGraphExecUpdate")) {
    CUgraphNode wrong = nullptr;
    CUgraphExecUpdateResult result = {};
    say("updated", cuGraphExecUpdate(exec, larger, &wrong, &result));
  } else {
    CUgraphExecUpdateResultInfo info = {};
    say("updated", cuGraphExecUpdate_v2(exec, larger, &info));
  }
  say("launched", cuGraphLaunch(exec, stream));
}

void trim() {
  CUgraphExec exec = nullptr;
  instantiate(&exec, built(64 * kMiB, true));
  say("launched", cuGraphLaunch(exec, stream));
  cuCtxSynchronize();
  say("trimmed", cuDeviceGraphMemTrim(0));
}

void run_it() {
  CUgraphExec exec = nullptr;
  say("instantiated", instantiate(&exec, built(512 * kMiB, true)));
  if (exec != nullptr) say("run", launch(exec));
}

}  // namespace

int main(int argc, char **argv) {
  CUcontext context = nullptr;
  if (argc != 4 || cuInit(0) != CUDA_SUCCESS || cuCtxCreate_v2(&context, 0, 0) != CUDA_SUCCESS) return 1;
  build = argv[1];
  inst = argv[2];
  run = argv[3];
  cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
  CUgraphExec small = nullptr;
  cuGraphInstantiateWithFlags(&small, built(kMiB, true), 0);
  if (is(run, "cuGraphExecDestroy")) {
    reuse_the_handle();
  } else if (strncmp(run, "cuGraphExecUpdate", 17) == 0) {
    update();
  } else if (is(run, "cuDeviceGraphMemTrim")) {
    trim();
  } else {
    run_it();
  }
  cuCtxSynchronize();
  simcuda_books books = {};
  simcuda_device_books(0, &books);
  say("graphs hold", static_cast<long long>(books.graph_bytes / kMiB));
  return 0;
}
