// Which calls about graphs that allocate are refused, and how: for lack of memory, and by the rules of such graphs?
// Driver 580 keeps the whole device in its pool after a refused launch, so what needs memory comes before.
#include "tests/gpu/questions/graph.h"

namespace {

using namespace question;

std::uint64_t reserved_of(CUmemoryPool pool) {
  cuuint64_t value = 0;
  must(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &value));
  return value;
}

CUgraph capture_block(Test &test, const std::string &name, CUmemoryPool pool, CUstream stream) {
  CUgraph graph = nullptr;
  CUdeviceptr block = 0;
  cuuint64_t value = 0;
  must(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  test.code(name + ".allocate_code", cuMemAllocFromPoolAsync(&block, 64 * kMiB, pool, stream));
  test.code(name + ".attribute_in_a_capture_code",
            cuDeviceGetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT, &value));
  must(cuMemsetD8Async(block, 7, 64 * kMiB, stream));
  test.code(name + ".free_code", cuMemFreeAsync(block, stream));
  must(cuStreamEndCapture(stream, &graph));
  return graph;
}

// What a graph with memory does not allow.
void try_rules(Test &test, const std::string &name, CUgraph graph, CUgraphExec exec, CUstream stream) {
  CUgraphExec second = nullptr;
  test.code(name + ".second_instantiation_code", cuGraphInstantiate(&second, graph, 0));
  CUgraph copy = nullptr;
  test.code(name + ".clone_code", cuGraphClone(&copy, graph));
  CUgraphExecUpdateResultInfo info = {};
  test.code(name + ".update_code", cuGraphExecUpdate(exec, graph, &info));
  test.number(name + ".update_result", info.result);
  CUgraph outer = nullptr;
  must(cuGraphCreate(&outer, 0));
  CUgraphNode node = nullptr;
  test.code(name + ".child_graph_code", cuGraphAddChildGraphNode(&node, outer, nullptr, 0, graph));
  must(cuGraphDestroy(outer));
  CUgraph none = nullptr;
  must(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  test.code(name + ".trim_in_a_capture_code", cuDeviceGraphMemTrim(0));
  test.code(name + ".end_of_that_capture_code", cuStreamEndCapture(stream, &none));
  if (none != nullptr) must(cuGraphDestroy(none));
}

void captured_from(Test &test, const std::string &name, CUmemoryPool pool, CUstream stream) {
  must(cuDeviceGraphMemTrim(0));
  Steps steps(test, name);
  const CUgraph graph = capture_block(test, name, pool, stream);
  steps.after("captured");
  CUgraphExec exec = nullptr;
  must(cuGraphInstantiate(&exec, graph, 0));
  steps.after("instantiated");
  launch(exec, stream);
  steps.after("launched");
  test.number(name + ".pool_reserved", reserved_of(pool));
  try_rules(test, name, graph, exec, stream);
  must(cuGraphExecDestroy(exec));
  steps.after("exec_destroyed");
  CUgraphExec second = nullptr;
  test.code(name + ".instantiation_after_it_code", cuGraphInstantiate(&second, graph, 0));
  if (second != nullptr) must(cuGraphExecDestroy(second));
  must(cuGraphDestroy(graph));
}

void captured(Test &test) {
  Cleanup cleanup;
  const CUstream stream = new_stream(cleanup);
  CUmemoryPool pool = nullptr;
  must(cuDeviceGetDefaultMemPool(&pool, 0));
  captured_from(test, "default_pool", pool, stream);
  CUmemPoolProps props = {};
  props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  props.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  must(cuMemPoolCreate(&pool, &props));
  captured_from(test, "own_pool", pool, stream);
  must(cuMemPoolDestroy(pool));
  must(cuDeviceGraphMemTrim(0));
  test.note("Stream-ordered allocations that a capture makes nodes of a graph, and what such a graph does not allow.");
}

void retained(Test &test) {
  Cleanup cleanup;
  const CUstream stream = new_stream(cleanup);
  must(cuDeviceGraphMemTrim(0));
  const std::size_t bytes = free_bytes() / 2;
  Graph graph({bytes}, false, true);
  const CUgraphExec exec = instantiated(graph);
  launch(exec, stream);
  must(cuGraphExecDestroy(exec));
  test.number("reserved", reserved());
  CUdeviceptr block = 0;
  test.code("cuMemAlloc_code", cuMemAlloc(&block, free_bytes() + bytes / 2));
  if (block != 0) must(cuMemFree(block));
  test.number("reserved_after", reserved());
  must(cuDeviceGraphMemTrim(0));
  test.note("Is what graphs retain, half of the device, there for cuMemAlloc?");
}

// Takes all but less than 32 MiB of the device.
std::vector<CUdeviceptr> filled() {
  std::vector<CUdeviceptr> blocks;
  for (std::size_t step = 16 * kGiB; step >= 32 * kMiB;) {
    CUdeviceptr block = 0;
    if (cuMemAlloc(&block, step) == CUDA_SUCCESS) {
      blocks.push_back(block);
    } else {
      step /= 2;
    }
  }
  return blocks;
}

void full(Test &test) {
  Cleanup cleanup;
  const CUstream stream = new_stream(cleanup);
  must(cuDeviceGraphMemTrim(0));
  Graph graph({kGiB}, false, true);
  const CUgraphExec exec = instantiated(graph);
  const std::vector<CUdeviceptr> blocks = filled();
  test.number("free_bytes", free_bytes());
  test.code("launch_code", cuGraphLaunch(exec, stream));
  test.code("synchronize_code", cuStreamSynchronize(stream));
  test.number("reserved_after", reserved());
  for (const CUdeviceptr block : blocks) must(cuMemFree(block));
  test.code("room_again.launch_code", cuGraphLaunch(exec, stream));
  test.code("room_again.synchronize_code", cuStreamSynchronize(stream));
  must(cuGraphExecDestroy(exec));
  test.note("A launch for which other calls have left no memory, and the same when they have given it back.");
}

void too_large(Test &test) {
  Cleanup cleanup;
  const CUstream stream = new_stream(cleanup);
  must(cuDeviceGraphMemTrim(0));
  std::size_t free = 0, total = 0;
  must(cuMemGetInfo(&free, &total));
  for (const auto &[name, bytes] :
       {std::pair<std::string, std::size_t>{"more_than_is_free", free + kGiB / 2}, {"more_than_there_is", total * 2}}) {
    CUgraph graph = nullptr;
    must(cuGraphCreate(&graph, 0));
    CUgraphNode node = nullptr;
    CUdeviceptr address = 0;
    test.code(name + ".build_code", add_allocation(graph, bytes, {}, &node, &address));
    CUgraphExec exec = nullptr;
    const CUresult made = cuGraphInstantiate(&exec, graph, 0);
    test.code(name + ".instantiate_code", made);
    if (made == CUDA_SUCCESS) {
      test.code(name + ".upload_code", cuGraphUpload(exec, stream));
      test.code(name + ".launch_code", cuGraphLaunch(exec, stream));
      test.code(name + ".synchronize_code", cuStreamSynchronize(stream));
      must(cuGraphExecDestroy(exec));
    }
    must(cuGraphDestroy(graph));
    test.number(name + ".reserved_after", reserved());
  }
  test.note("Which call is refused for a graph that never fits, and with which code.");
}

// May an executable graph get another block, of another size?
void updated(Test &test) {
  Cleanup cleanup;
  const CUstream stream = new_stream(cleanup);
  for (const bool free : {true, false}) {
    const std::string name = free ? "freed" : "left";
    must(cuDeviceGraphMemTrim(0));
    Graph first({64 * kMiB}, false, free), same({64 * kMiB}, false, free), larger({128 * kMiB}, false, free);
    const CUgraphExec exec = instantiated(first);
    CUgraphExecUpdateResultInfo info = {};
    test.code(name + ".same_size_code", cuGraphExecUpdate(exec, same.get(), &info));
    test.number(name + ".same_size_result", info.result);
    test.code(name + ".larger_code", cuGraphExecUpdate(exec, larger.get(), &info));
    test.number(name + ".larger_result", info.result);
    test.code(name + ".launch_code", cuGraphLaunch(exec, stream));
    must(cuCtxSynchronize());
    test.number(name + ".reserved", reserved());
    must(cuGraphExecDestroy(exec));
    for (const Graph *graph : {&first, &same, &larger}) {
      if (!free && cuMemFree(graph->address()) == CUDA_SUCCESS) test.yes(name + ".larger_was_left", graph == &larger);
    }
  }
  must(cuDeviceGraphMemTrim(0));
  test.note("Updates of an executable graph by graphs with other blocks.");
}

// A graph around others that were moved into it, which allocate one block each.
void hold(Test &test, const std::string &name, const std::vector<std::size_t> &blocks, CUstream stream) {
  Graph outer({}, false, false);
  for (const std::size_t bytes : blocks) {
    CUgraph inner = nullptr;
    CUgraphNode node = nullptr, freed = nullptr;
    CUdeviceptr address = 0;
    must(cuGraphCreate(&inner, 0));
    must(add_allocation(inner, bytes, {}, &node, &address));
    must(cuGraphAddMemFreeNode(&freed, inner, &node, 1, address));
    CUgraphNodeParams move = {};
    move.type = CU_GRAPH_NODE_TYPE_GRAPH;
    move.graph = {inner, CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE};
    must(cuGraphAddNode(&node, outer.get(), nullptr, nullptr, 0, &move));
  }
  Steps steps(test, name);
  const CUgraphExec exec = instantiated(outer);
  steps.after("instantiated");
  launch(exec, stream);
  steps.after("launched");
  must(cuGraphExecDestroy(exec));
  must(cuDeviceGraphMemTrim(0));
}

void moved(Test &test) {
  Cleanup cleanup;
  const CUstream stream = new_stream(cleanup);
  must(cuDeviceGraphMemTrim(0));
  hold(test, "1_MiB", {kMiB}, stream);
  hold(test, "33_MiB", {33 * kMiB}, stream);
  hold(test, "two_of_1_MiB", {kMiB, kMiB}, stream);
  hold(test, "two_of_33_MiB", {33 * kMiB, 33 * kMiB}, stream);
  test.note("What a launch takes whose memory is that of graphs in the graph.");
}

}  // namespace

int main() {
  return question::run({{"moved", moved},
                        {"captured", captured},
                        {"updated", updated},
                        {"retained", retained},
                        {"full", full},
                        {"too_large", too_large}});
}
