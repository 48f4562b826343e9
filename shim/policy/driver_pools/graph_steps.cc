#include "policy/driver_pools/graph_steps.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "ledger/ledger.h"

namespace ration::policy {
namespace {

using driver::real;

// One graph, and the indices of its steps.
struct Scope {
  CUgraph graph = nullptr;
  std::size_t begin = SIZE_MAX;  // the two steps of the node that holds it; the outermost graph has none
  std::size_t end = SIZE_MAX;
  std::vector<CUgraphNode> nodes = {};
  std::size_t first = 0;                                      // index of the first node's step; the other nodes follow
  std::unordered_map<std::size_t, std::size_t> ends_of = {};  // by index of a node with a child graph: its second step
};

std::vector<CUgraphNode> nodes_of(CUgraph graph) {
  std::size_t count = 0;
  if (!real.cuGraphGetNodes.present() || real.cuGraphGetNodes(graph, nullptr, &count) != CUDA_SUCCESS) {
    return {};
  }
  std::vector<CUgraphNode> nodes(count);
  if (count == 0 || real.cuGraphGetNodes(graph, nodes.data(), &count) != CUDA_SUCCESS) {
    return {};
  }
  nodes.resize(std::min(count, nodes.size()));
  return nodes;
}

GraphStep step_of(CUgraphNode node, CUgraphNodeType type) {
  if (type == CU_GRAPH_NODE_TYPE_MEM_ALLOC) {
    CUDA_MEM_ALLOC_NODE_PARAMS params = {};
    const bool known = real.cuGraphMemAllocNodeGetParams(node, &params) == CUDA_SUCCESS;
    const CUmemLocation &where = params.poolProps.location;
    if (known && where.type == CU_MEM_LOCATION_TYPE_DEVICE && where.id >= 0 && where.id < ledger::kMaxDevices) {
      return {GraphStep::Kind::allocates, where.id, params.bytesize, params.dptr};
    }
  } else if (type == CU_GRAPH_NODE_TYPE_MEM_FREE) {
    CUdeviceptr address = 0;
    if (real.cuGraphMemFreeNodeGetParams.present() &&
        real.cuGraphMemFreeNodeGetParams(node, &address) == CUDA_SUCCESS) {
      return {GraphStep::Kind::frees, 0, 0, address};
    }
  }
  return {};
}

// Adds the steps of all graphs, without their order. Returns whether any of them allocates or frees.
bool add_nodes(std::vector<Scope> &scopes, std::vector<GraphStep> &steps) {
  bool any = false;
  for (std::size_t each = 0; each < scopes.size(); ++each) {
    std::vector<CUgraphNode> nodes = nodes_of(scopes[each].graph);
    const std::size_t first = steps.size();
    std::vector<std::pair<std::size_t, CUgraph>> inner;  // by index of its node
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      CUgraphNodeType type{};
      CUgraph child = nullptr;
      const bool known = real.cuGraphNodeGetType(nodes[i], &type) == CUDA_SUCCESS;
      steps.push_back(known ? step_of(nodes[i], type) : GraphStep());
      steps.back().inner = scopes[each].begin != SIZE_MAX;
      any = any || steps.back().kind != GraphStep::Kind::other;
      if (known && type == CU_GRAPH_NODE_TYPE_GRAPH && real.cuGraphChildGraphNodeGetGraph.present() &&
          real.cuGraphChildGraphNodeGetGraph(nodes[i], &child) == CUDA_SUCCESS) {
        inner.emplace_back(i, child);
      }
    }
    scopes[each].nodes = std::move(nodes);
    scopes[each].first = first;
    for (const auto &[node, child] : inner) {
      scopes[each].ends_of[node] = steps.size();
      scopes.push_back({child, first + node, steps.size()});
      steps.emplace_back();
    }
  }
  return any;
}

using Edges = std::vector<std::pair<CUgraphNode, CUgraphNode>>;

// The edges of a graph; none if the driver cannot report them.
Edges edges_of(CUgraph graph) {
  const auto ask = [&](CUgraphNode *from, CUgraphNode *to, CUgraphEdgeData *data, std::size_t *count) {
    return real.cuGraphGetEdges_v2.present() ? real.cuGraphGetEdges_v2(graph, from, to, data, count)
           : real.cuGraphGetEdges.present()  ? real.cuGraphGetEdges(graph, from, to, count)
                                             : CUDA_ERROR_NOT_FOUND;
  };
  std::size_t count = 0;
  if (ask(nullptr, nullptr, nullptr, &count) != CUDA_SUCCESS || count == 0) {
    return {};
  }
  std::vector<CUgraphNode> from(count);
  std::vector<CUgraphNode> to(count);
  std::vector<CUgraphEdgeData> data(count);
  if (ask(from.data(), to.data(), data.data(), &count) != CUDA_SUCCESS) {
    return {};
  }
  Edges edges;
  for (std::size_t i = 0; i < std::min(count, from.size()); ++i) {
    edges.emplace_back(from[i], to[i]);
  }
  return edges;
}

void add_order(const Scope &scope, std::vector<std::vector<std::size_t>> &before) {
  std::unordered_map<CUgraphNode, std::size_t> numbers;
  std::vector<std::size_t> last(scope.nodes.size());  // steps
  for (std::size_t i = 0; i < scope.nodes.size(); ++i) {
    numbers[scope.nodes[i]] = i;
    const auto end = scope.ends_of.find(i);
    last[i] = end != scope.ends_of.end() ? end->second : scope.first + i;
  }
  std::vector<bool> followed(scope.nodes.size());
  for (const auto &[from, to] : edges_of(scope.graph)) {
    const auto one = numbers.find(from);
    const auto other = numbers.find(to);
    if (one != numbers.end() && other != numbers.end()) {
      before[scope.first + other->second].push_back(last[one->second]);
      followed[one->second] = true;
    }
  }
  if (scope.begin == SIZE_MAX) {
    return;
  }
  before[scope.end].push_back(scope.begin);  // needed if the child graph is empty
  for (std::size_t i = 0; i < scope.nodes.size(); ++i) {
    if (before[scope.first + i].empty()) {
      before[scope.first + i].push_back(scope.begin);
    }
    if (!followed[i]) {
      before[scope.end].push_back(last[i]);
    }
  }
}

}  // namespace

GraphSteps steps_of(CUgraph graph) {
  GraphSteps all;
  if (!real.cuGraphNodeGetType.present() || !real.cuGraphMemAllocNodeGetParams.present()) {
    return all;
  }
  std::vector<Scope> scopes;
  scopes.push_back({graph});
  if (!add_nodes(scopes, all.steps)) {
    return {};
  }
  all.before.resize(all.steps.size());
  for (const Scope &scope : scopes) {
    add_order(scope, all.before);
  }
  return all;
}

}  // namespace ration::policy
