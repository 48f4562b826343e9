// Graphs built node by node: kinds, edges, order, clones, child graphs and updates.
#include <cstring>

#include "tests/simcuda/conformance/graph.h"

namespace simcuda::conformance {
namespace {

// Host nodes that note the order in which they run.
struct Order {
  std::vector<int> seen;
  struct Entry {
    Order *order;
    int number;
  };
  Entry entries[8] = {{this, 0}, {this, 1}, {this, 2}, {this, 3}, {this, 4}, {this, 5}, {this, 6}, {this, 7}};
  static void note(void *entry) {
    const auto *const own = static_cast<Entry *>(entry);
    own->order->seen.push_back(own->number);
  }
};

void run_once(CUgraph graph) {
  const CUstream stream = new_stream(CU_STREAM_NON_BLOCKING);
  Exec(graph).launch(stream);
  REQUIRE(cuStreamDestroy(stream) == CUDA_SUCCESS);
}

TEST_CASE("nodes run after what they depend on, edges that are added later included") {
  const CurrentContext context;
  NewGraph graph;
  Order order;
  const CUgraphNode third = graph.call(Order::note, &order.entries[3], {});
  const CUgraphNode first = graph.call(Order::note, &order.entries[1], {});
  const CUgraphNode second = graph.call(Order::note, &order.entries[2], {first});
  REQUIRE(cuGraphAddDependencies(graph.get(), &second, &third, nullptr, 1) == CUDA_SUCCESS);
  CHECK(cuGraphAddDependencies(graph.get(), &second, &third, nullptr, 1) == CUDA_ERROR_INVALID_VALUE);
  run_once(graph.get());
  CHECK(order.seen == std::vector<int>{1, 2, 3});
  CHECK(dependencies_of(third) == Nodes{second});
  std::size_t count = 5;
  CUgraphNode from[5] = {}, to[5] = {};
  CUgraphEdgeData data[5] = {};
  REQUIRE(cuGraphGetEdges(graph.get(), nullptr, nullptr, nullptr, &count) == CUDA_SUCCESS);
  CHECK(count == 2);
  count = 5;
  std::memset(data, 1, sizeof data);
  REQUIRE(cuGraphGetEdges(graph.get(), from, to, data, &count) == CUDA_SUCCESS);
  CHECK(count == 2);
  CHECK(data[1].type == 0);
  CHECK(from[2] == nullptr);
  for (std::size_t i = 0; i < count; ++i) CHECK(to[i] == (from[i] == first ? second : third));
}

TEST_CASE("a graph with a cycle cannot be instantiated") {
  const CurrentContext context;
  NewGraph graph;
  const CUgraphNode first = graph.empty({}), second = graph.empty({first});
  if (cuGraphAddDependencies(graph.get(), &second, &first, nullptr, 1) != CUDA_SUCCESS) return;
  CUgraphExec exec = nullptr;
  CUDA_GRAPH_INSTANTIATE_PARAMS params = {};
  CHECK(cuGraphInstantiate(&exec, graph.get(), 0) != CUDA_SUCCESS);
  CHECK(cuGraphInstantiateWithParams(&exec, graph.get(), &params) != CUDA_SUCCESS);
  CHECK(params.result_out == CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE);
}

TEST_CASE("a node's dependencies are nodes of its graph, each once") {
  const CurrentContext context;
  NewGraph graph, other;
  const CUgraphNode own = graph.empty({}), foreign = other.empty({});
  CUgraphNode made = nullptr;
  const CUgraphNode twice[] = {own, own};
  CHECK(cuGraphAddEmptyNode(&made, graph.get(), &foreign, 1) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuGraphAddEmptyNode(&made, graph.get(), twice, 2) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuGraphAddEmptyNode(nullptr, graph.get(), nullptr, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuGraphAddDependencies(graph.get(), &own, &foreign, nullptr, 1) == CUDA_ERROR_INVALID_VALUE);
  CHECK(all_nodes(graph.get()) == Nodes{own});
}

TEST_CASE("a destroyed node takes its edges along") {
  const CurrentContext context;
  NewGraph graph;
  int calls = 0;
  const CUgraphNode first = graph.empty({}), middle = graph.call(count_call, &calls, {first});
  const CUgraphNode last = graph.call(count_call, &calls, {middle});
  REQUIRE(cuGraphDestroyNode(middle) == CUDA_SUCCESS);
  CHECK(all_nodes(graph.get()) == Nodes{first, last});
  CHECK(dependencies_of(last).empty());
  run_once(graph.get());
  CHECK(calls == 1);
}

TEST_CASE("a clone is a graph of its own") {
  const CurrentContext context;
  NewGraph graph;
  int calls = 0;
  const CUgraphNode first = graph.call(count_call, &calls, {});
  graph.call(count_call, &calls, {first});
  CUgraph clone = nullptr;
  REQUIRE(cuGraphClone(&clone, graph.get()) == CUDA_SUCCESS);
  graph.call(count_call, &calls, {});
  const Nodes copies = all_nodes(clone);
  REQUIRE(copies.size() == 2);
  CHECK(dependencies_of(copies[1]) == Nodes{copies[0]});
  graph.destroy();
  run_once(clone);
  CHECK(calls == 2);
  CHECK(cuGraphDestroy(clone) == CUDA_SUCCESS);
}

TEST_CASE("a child graph is a copy that runs in its node's place") {
  const CurrentContext context;
  NewGraph graph, child;
  Order order;
  child.call(Order::note, &order.entries[3], {child.call(Order::note, &order.entries[2], {})});
  const CUgraphNode first = graph.call(Order::note, &order.entries[1], {});
  CUgraphNode node = nullptr;
  REQUIRE(cuGraphAddChildGraphNode(&node, graph.get(), &first, 1, child.get()) == CUDA_SUCCESS);
  graph.call(Order::note, &order.entries[4], {node});
  child.destroy();
  CHECK(type_of(node) == CU_GRAPH_NODE_TYPE_GRAPH);
  CUgraph embedded = nullptr;
  REQUIRE(cuGraphChildGraphNodeGetGraph(node, &embedded) == CUDA_SUCCESS);
  CHECK(all_nodes(embedded).size() == 2);
  run_once(graph.get());
  CHECK(order.seen == std::vector<int>{1, 2, 3, 4});
  CHECK(cuGraphChildGraphNodeGetGraph(first, &embedded) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("an update replaces the parameters of an executable graph of the same shape") {
  const CurrentContext context;
  const CUstream stream = new_stream(CU_STREAM_NON_BLOCKING);
  NewGraph graph, same, longer, other;
  int old_calls = 0, new_calls = 0;
  graph.call(count_call, &old_calls, {graph.empty({})});
  same.call(count_call, &new_calls, {same.empty({})});
  longer.empty({longer.call(count_call, &new_calls, {longer.empty({})})});
  other.empty({other.empty({})});
  Exec exec(graph);
  CUgraphExecUpdateResultInfo info = {};
  CHECK(cuGraphExecUpdate(exec.get(), longer.get(), &info) == CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
  CHECK(info.result == CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
  CHECK(cuGraphExecUpdate(exec.get(), other.get(), &info) == CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
  CHECK(info.result == CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED);
  exec.launch(stream);
  CHECK(cuGraphExecUpdate(exec.get(), same.get(), &info) == CUDA_SUCCESS);
  CHECK(info.result == CU_GRAPH_EXEC_UPDATE_SUCCESS);
  exec.launch(stream);
  CHECK(old_calls == 1);
  CHECK(new_calls == 1);
}

TEST_CASE("an instantiation can upload") {
  const CurrentContext context;
  const CUstream stream = new_stream(CU_STREAM_NON_BLOCKING);
  trim();
  NewGraph graph;
  graph.add_block(kMiB);
  CUDA_GRAPH_INSTANTIATE_PARAMS params = {};
  params.flags = CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD;
  params.hUploadStream = stream;
  CUgraphExec exec = nullptr;
  REQUIRE(cuGraphInstantiateWithParams(&exec, graph.get(), &params) == CUDA_SUCCESS);
  REQUIRE(cuStreamSynchronize(stream) == CUDA_SUCCESS);
  CHECK(params.result_out == CUDA_GRAPH_INSTANTIATE_SUCCESS);
  CHECK(graph_memory() == 32 * kMiB);
  cuuint64_t flags = 1;
  REQUIRE(cuGraphExecGetFlags(exec, &flags) == CUDA_SUCCESS);
  CHECK(flags == 0);
  CHECK(cuGraphExecDestroy(exec) == CUDA_SUCCESS);
  trim();
}

}  // namespace
}  // namespace simcuda::conformance
