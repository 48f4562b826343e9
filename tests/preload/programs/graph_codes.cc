// graph_codes CASE: graphs that allocate, in a device or a limit of 1 GiB. Prints the codes, which are the same in
// both.
#include <cuda.h>
#include <stdio.h>
#include <string.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace {

constexpr size_t kMiB = size_t{1} << 20;
CUstream stream = nullptr;
CUcontext context = nullptr;

void say(const char *what, CUresult code) {
  printf("%s %d\n", what, static_cast<int>(code));
  cuStreamSynchronize(stream);
}

class Graph {
 public:
  Graph() { cuGraphCreate(&handle, 0); }

  // Each node comes after the one before it.
  CUdeviceptr allocate(size_t mib) {
    CUDA_MEM_ALLOC_NODE_PARAMS params = {};
    params.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    params.poolProps.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    params.bytesize = mib * kMiB;
    CUgraphNode node = nullptr;
    cuGraphAddMemAllocNode(&node, handle, &last_, last_ != nullptr ? 1 : 0, &params);
    last_ = node;
    return params.dptr;
  }
  void free(CUdeviceptr block) {
    CUgraphNode node = nullptr;
    cuGraphAddMemFreeNode(&node, handle, &last_, last_ != nullptr ? 1 : 0, block);
    last_ = node;
  }
  void hold(const Graph &child) {
    CUgraphNodeParams params = {};
    params.type = CU_GRAPH_NODE_TYPE_GRAPH;
    params.graph.graph = child.handle;
    params.graph.ownership = CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE;
    CUgraphNode node = nullptr;
    cuGraphAddNode(&node, handle, &last_, nullptr, last_ != nullptr ? 1 : 0, &params);
    last_ = node;
  }
  CUgraphExec instantiate(unsigned flags = 0) const {
    CUgraphExec exec = nullptr;
    say("instantiated", cuGraphInstantiate(&exec, handle, flags));
    return exec;
  }

  CUgraph handle = nullptr;

 private:
  CUgraphNode last_ = nullptr;
};

Graph block_of(size_t mib) {
  Graph graph;
  graph.free(graph.allocate(mib));
  return graph;
}

void launch(CUgraphExec exec) {
  say("launched", cuGraphLaunch(exec, stream));
}

CUdeviceptr take(size_t mib) {
  CUdeviceptr block = 0;
  say("taken", cuMemAlloc(&block, mib * kMiB));
  return block;
}

void nest(size_t mib) {
  Graph graph = block_of(mib);
  for (int depth = 0; depth < 12; ++depth) {
    Graph outer;
    outer.hold(graph);
    graph = outer;
  }
  launch(graph.instantiate());
}

void turns() {
  Graph graph;
  for (int i = 0; i < 4; ++i) graph.hold(block_of(400));
  launch(graph.instantiate());
}

void freed_beside() {
  Graph inner;
  Graph other;
  other.free(inner.allocate(300));
  Graph graph;
  graph.hold(inner);
  graph.hold(other);
  const CUgraphExec exec = graph.instantiate();
  for (int i = 0; i < 6; ++i) launch(exec);
  const CUgraphExec first = block_of(600).instantiate();
  const CUgraphExec second = block_of(608).instantiate();
  cuDeviceGraphMemTrim(0);
  take(400);
  for (int i = 0; i < 3; ++i) {
    launch(first);
    launch(second);
  }
}

void freed_around() {
  Graph inner;
  const CUdeviceptr block = inner.allocate(800);
  Graph graph;
  graph.hold(inner);
  graph.free(block);
  graph.free(graph.allocate(300));
  launch(graph.instantiate());
}

void rounded() {
  Graph leaves;
  leaves.allocate(1);
  launch(leaves.instantiate());
  const CUgraphExec exec = block_of(432).instantiate();
  take(568);
  launch(exec);
}

// A graph of 400 MiB, half of which it leaves, then a small one, and a block for which the rest just suffices.
CUgraphExec left_behind(unsigned flags) {
  Graph graph;
  const CUdeviceptr block = graph.allocate(200);
  graph.allocate(200);
  graph.free(block);
  const CUgraphExec exec = graph.instantiate(flags);
  const CUgraphExec small = block_of(32).instantiate();
  launch(exec);
  launch(small);
  take(450);
  return exec;
}

void reset() {
  for (int i = 0; i < 4; ++i) {
    Graph leaves;
    leaves.allocate(100);
    launch(leaves.instantiate());
    say("reset", cuDevicePrimaryCtxReset(0));
    cuDevicePrimaryCtxRetain(&context, 0);
    cuCtxSetCurrent(context);
    cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
  }
  const CUgraphExec first = block_of(600).instantiate();
  const CUgraphExec second = block_of(608).instantiate();
  take(400);
  launch(first);
  launch(second);
  launch(first);
}

void full_at_first() {
  const CUdeviceptr block = take(800);
  const CUgraphExec exec = block_of(600).instantiate();
  say("freed", cuMemFree(block));
  launch(exec);
}

void never_fits() {
  launch(block_of(1100).instantiate());
  launch(block_of(100).instantiate());
  launch(block_of(1100).instantiate());
}

void wrong() {
  Graph graph;
  const CUdeviceptr block = graph.allocate(2000);
  CUgraphNode node = nullptr;
  cuGraphAddMemFreeNode(&node, graph.handle, nullptr, 0, block);  // maybe before its allocation
  graph.instantiate();
}

}  // namespace

int main(int argc, char **argv) {
  const std::map<std::string, std::function<void()>> cases = {
      {"nested", [] { nest(600); }},
      {"nested too large", [] { nest(1100); }},
      {"nested on a device of its size", [] { nest(1000); }},  // what a graph in a graph takes more does not fit
      {"graphs in turns", turns},
      {"freed beside", freed_beside},
      {"freed around", freed_around},
      {"rounded", rounded},
      {"launched again", [] { launch(left_behind(CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH)); }},
      {"uploaded again", [] { say("uploaded", cuGraphUpload(left_behind(0), stream)); }},
      {"launched too often", [] { launch(left_behind(0)); }},
      {"reset", reset},
      {"full at first", full_at_first},
      {"never fits", never_fits},
      {"wrong", wrong},
  };
  const auto chosen = argc == 2 ? cases.find(argv[1]) : cases.end();
  if (chosen == cases.end() || cuInit(0) != CUDA_SUCCESS || cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS) {
    return 1;
  }
  cuCtxSetCurrent(context);
  cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
  chosen->second();
  return 0;
}
