#include "unit/policy/fake_graphs.h"

#include <algorithm>

#include "unit/policy/fake_call.h"

namespace ration::test {
namespace {

using driver::real;
FakeGraphs *graphs_of_test = nullptr;
std::map<CUgraph, FakeGraphs::Graph> *graphs_by_handle = nullptr;

FakeGraphs::Node &node_of(CUgraphNode handle) {
  return *reinterpret_cast<FakeGraphs::Node *>(handle);
}

CUgraphNode handle_of(FakeGraphs::Node &node) {
  return reinterpret_cast<CUgraphNode>(&node);
}

void fill_questions() {
  fill(
      real.cuGraphGetNodes, +[](CUgraph graph, CUgraphNode *nodes, std::size_t *count) {
        return call("cuGraphGetNodes", [&] {
          FakeGraphs::Graph &asked = graphs_by_handle->at(graph);
          for (std::size_t i = 0; nodes != nullptr && i < *count; ++i) {
            nodes[i] = handle_of(asked.nodes[i]);
          }
          return answer(count, asked.nodes.size());
        });
      });
  fill(
      real.cuGraphGetEdges_v2,
      +[](CUgraph graph, CUgraphNode *from, CUgraphNode *to, CUgraphEdgeData *, std::size_t *count) {
        return call("cuGraphGetEdges_v2", [&] {
          FakeGraphs::Graph &asked = graphs_by_handle->at(graph);
          for (std::size_t i = 0; from != nullptr && i < *count; ++i) {
            from[i] = handle_of(asked.nodes[asked.edges[i].first]);
            to[i] = handle_of(asked.nodes[asked.edges[i].second]);
          }
          return answer(count, asked.edges.size());
        });
      });
  fill(
      real.cuGraphNodeGetType, +[](CUgraphNode node, CUgraphNodeType *type) {
        return call("cuGraphNodeGetType", [&] { return answer(type, node_of(node).type); });
      });
  fill(
      real.cuGraphChildGraphNodeGetGraph, +[](CUgraphNode node, CUgraph *graph) {
        return call("cuGraphChildGraphNodeGetGraph", [&] { return answer(graph, node_of(node).child); });
      });
}

void fill_parameters() {
  fill(
      real.cuGraphMemAllocNodeGetParams, +[](CUgraphNode node, CUDA_MEM_ALLOC_NODE_PARAMS *params) {
        return call("cuGraphMemAllocNodeGetParams", [&] {
          params->poolProps.location = {CU_MEM_LOCATION_TYPE_DEVICE, node_of(node).device};
          params->bytesize = node_of(node).bytes;
          return answer(&params->dptr, node_of(node).address);
        });
      });
  fill(
      real.cuGraphMemFreeNodeGetParams, +[](CUgraphNode node, CUdeviceptr *address) {
        return call("cuGraphMemFreeNodeGetParams", [&] { return answer(address, node_of(node).address); });
      });
}

}  // namespace

FakeGraphs::FakeGraphs(FakeDriver &driver) : driver_(driver) {
  graphs_of_test = this;
  graphs_by_handle = &graphs_;
  fill_questions();
  fill_parameters();
  fill_slots_of_ours();
  fill(
      real.cuDeviceGetGraphMemAttribute, +[](CUdevice, CUgraphMem_attribute, void *value) {
        return call("cuDeviceGetGraphMemAttribute",
                    [&] { return answer(static_cast<cuuint64_t *>(value), graphs_of_test->reserved); });
      });
  fill(
      real.cuDeviceGraphMemTrim, +[](CUdevice) {
        return call("cuDeviceGraphMemTrim", [&] {
          ++graphs_of_test->trims;
          graphs_of_test->driver_.taken_by_others -= graphs_of_test->reserved - graphs_of_test->in_use;
          graphs_of_test->reserved = graphs_of_test->in_use;
          return CUDA_SUCCESS;
        });
      });
  fill(
      real.cuGraphUpload, +[](CUgraphExec exec, CUstream) { return graphs_of_test->run("cuGraphUpload", exec); });
}

// By which Ration builds graphs itself: one at a time, with one node.
void FakeGraphs::fill_slots_of_ours() {
  fill(
      real.cuGraphCreate, +[](CUgraph *graph, unsigned) {
        return call("cuGraphCreate",
                    [&] { return answer(graph, graphs_of_test->ours_ = graphs_of_test->graph(0, {})); });
      });
  fill(
      real.cuGraphAddMemAllocNode,
      +[](CUgraphNode *, CUgraph graph, const CUgraphNode *, std::size_t, CUDA_MEM_ALLOC_NODE_PARAMS *params) {
        return call("cuGraphAddMemAllocNode", [&] {
          graphs_by_handle->at(graph).takes = params->bytesize;
          return CUDA_SUCCESS;
        });
      });
  fill(
      real.cuGraphInstantiateWithFlags, +[](CUgraphExec *exec, CUgraph graph, unsigned long long) {
        graphs_of_test->of_ours += graph == graphs_of_test->ours_ ? 1 : 0;
        return graphs_of_test->instantiate(exec, graph);
      });
  fill(
      real.cuGraphExecDestroy, +[](CUgraphExec exec) {
        return call("cuGraphExecDestroy", [&] {
          graphs_of_test->execs_.erase(exec);
          return CUDA_SUCCESS;
        });
      });
  fill(
      real.cuGraphDestroy, +[](CUgraph graph) {
        return call("cuGraphDestroy", [&] {
          graphs_by_handle->erase(graph);
          return CUDA_SUCCESS;
        });
      });
}

CUgraph FakeGraphs::graph(std::uint64_t takes, const std::vector<Node> &nodes, bool ordered) {
  const auto handle = reinterpret_cast<CUgraph>(++next_);
  Graph &made = graphs_[handle];
  made.nodes.assign(nodes.begin(), nodes.end());
  made.takes = takes;
  for (std::size_t i = 1; ordered && i < nodes.size(); ++i) {
    made.edges.emplace_back(i - 1, i);
  }
  return handle;
}

CUresult FakeGraphs::instantiate(CUgraphExec *exec, CUgraph graph) {
  return call("cuGraphInstantiateWithFlags", [&] {
    if (takes_at_instantiation && take(graphs_.at(graph).takes) != CUDA_SUCCESS) {
      return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *exec = reinterpret_cast<CUgraphExec>(++next_);
    execs_[*exec] = graphs_.at(graph).takes;
    return CUDA_SUCCESS;
  });
}

CUresult FakeGraphs::run(const char *function, CUgraphExec exec) {
  return call(function, [&] {
    if (const auto hook = on_run) {
      hook();
    }
    return take(execs_.at(exec));
  });
}

CUresult FakeGraphs::take(std::uint64_t bytes) {
  const std::uint64_t wanted = std::max(reserved, (in_use + bytes + step - 1) / step * step);
  if (wanted - reserved > driver_.total - driver_.taken_by_others - driver_.used(0)) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  driver_.taken_by_others += wanted - reserved;
  reserved = wanted;
  return CUDA_SUCCESS;
}

}  // namespace ration::test
