// Which host functions wait for one that blocks: those of other streams, of other contexts, callbacks, those of graphs?
#include <atomic>
#include <chrono>
#include <thread>

#include "tests/gpu/questions/graph.h"

namespace {

using namespace question;

constexpr std::chrono::milliseconds kPatience{100};

struct Blocker {
  std::atomic<bool> reached{false}, open{false};
};

void block(void *blocker) {
  auto &self = *static_cast<Blocker *>(blocker);
  self.reached = true;
  while (!self.open) std::this_thread::yield();
}

void set(void *flag) {
  *static_cast<std::atomic<bool> *>(flag) = true;
}

void set_by_callback(CUstream, CUresult, void *flag) {
  set(flag);
}

bool is_set_in_time(const std::atomic<bool> &flag) {
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (!flag && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  return flag;
}

CUgraphExec graph_that_sets(std::atomic<bool> &flag) {
  CUgraph graph = nullptr;
  CUgraphNode node = nullptr;
  CUgraphExec exec = nullptr;
  const CUDA_HOST_NODE_PARAMS params{set, &flag};
  must(cuGraphCreate(&graph, 0));
  must(cuGraphAddHostNode(&node, graph, nullptr, 0, &params));
  must(cuGraphInstantiate(&exec, graph, 0));
  must(cuGraphDestroy(graph));
  return exec;
}

// Each in a stream of its own, while a host function of another stream blocks.
void beside(Test &test) {
  static Blocker blocker;
  static std::atomic<bool> by_stream{false}, by_callback{false}, by_graph{false}, by_context{false};
  Cleanup cleanup;
  CUcontext context = nullptr, other = nullptr;
  must(cuCtxGetCurrent(&context));
  must(cuCtxCreate(&other, nullptr, 0, 0));
  cleanup.add([other] { cuCtxDestroy(other); });
  CUstream elsewhere = nullptr;
  must(cuStreamCreate(&elsewhere, CU_STREAM_NON_BLOCKING));
  must(cuCtxSetCurrent(context));
  const CUstream held = new_stream(cleanup), one = new_stream(cleanup), two = new_stream(cleanup),
                 three = new_stream(cleanup);
  const CUgraphExec exec = graph_that_sets(by_graph);
  cleanup.add([exec] { cuGraphExecDestroy(exec); });
  cleanup.add([] {
    blocker.open = true;
    cuCtxSynchronize();
  });
  must(cuLaunchHostFunc(held, block, &blocker));
  test.yes("blocks", is_set_in_time(blocker.reached));
  must(cuLaunchHostFunc(one, set, &by_stream));
  must(cuStreamAddCallback(two, set_by_callback, &by_callback, 0));
  must(cuGraphLaunch(exec, three));
  must(cuCtxSetCurrent(other));
  must(cuLaunchHostFunc(elsewhere, set, &by_context));
  must(cuCtxSetCurrent(context));
  test.yes("another_streams_runs", is_set_in_time(by_stream));
  test.yes("a_callback_runs", is_set_in_time(by_callback));
  test.yes("a_graphs_runs", is_set_in_time(by_graph));
  test.yes("another_contexts_runs", is_set_in_time(by_context));
  test.note("Which host functions run within 100 ms while one of another stream blocks.");
}

}  // namespace

int main() {
  return question::run({{"beside", beside}});
}
