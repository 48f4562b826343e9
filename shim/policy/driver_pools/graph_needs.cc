#include "policy/driver_pools/graph_needs.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <unordered_map>
#include <utility>

#include "ledger/ledger.h"
#include "policy/driver_pools/stream_pools.h"

namespace ration::policy {
namespace {

using driver::real;

constexpr int kDeepest = 8;  // graphs in graphs
// Above that many bits of ancestors, or that many allocations, their order is left out of account.
constexpr std::size_t kMostBits = std::size_t{1} << 28;
constexpr std::size_t kMostPlaced = 8192;

// An allocation, a free, or of a child graph what it takes of a device, which counts as never freed.
struct Step {
  std::size_t node = 0;  // its number in the graph; several steps only of a child graph
  bool frees = false;
  int device = 0;
  std::uint64_t requested = 0;
  CUdeviceptr address = 0;

  std::uint64_t bytes() const { return StreamPools::whole_granules(requested); }
};

struct Shape {
  std::vector<std::vector<std::size_t>> before;  // by number of a node: what it directly depends on
  std::vector<Step> steps;                       // by number of their nodes
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

void add_child(CUgraphNode node, std::size_t number, int depth, std::vector<Step> &steps, GraphNeeds &needs);

std::vector<Step> steps_of(const std::vector<CUgraphNode> &nodes, int depth, GraphNeeds &needs) {
  std::vector<Step> steps;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    CUgraphNodeType type{};
    if (real.cuGraphNodeGetType(nodes[i], &type) != CUDA_SUCCESS) {
      continue;
    }
    if (type == CU_GRAPH_NODE_TYPE_MEM_ALLOC) {
      CUDA_MEM_ALLOC_NODE_PARAMS params = {};
      const bool known = real.cuGraphMemAllocNodeGetParams(nodes[i], &params) == CUDA_SUCCESS;
      const CUmemLocation &where = params.poolProps.location;
      if (known && where.type == CU_MEM_LOCATION_TYPE_DEVICE && where.id >= 0 && where.id < ledger::kMaxDevices) {
        steps.push_back({i, false, where.id, params.bytesize, params.dptr});
      }
    } else if (type == CU_GRAPH_NODE_TYPE_MEM_FREE) {
      CUdeviceptr address = 0;
      if (real.cuGraphMemFreeNodeGetParams.present() &&
          real.cuGraphMemFreeNodeGetParams(nodes[i], &address) == CUDA_SUCCESS) {
        steps.push_back({i, true, 0, 0, address});
      }
    } else if (type == CU_GRAPH_NODE_TYPE_GRAPH && depth < kDeepest) {
      add_child(nodes[i], i, depth, steps, needs);
    }
  }
  return steps;
}

std::vector<std::vector<std::size_t>> order_of(CUgraph graph, const std::vector<CUgraphNode> &nodes) {
  std::vector<std::vector<std::size_t>> before(nodes.size());
  const auto edges = [&](CUgraphNode *from, CUgraphNode *to, CUgraphEdgeData *data, std::size_t *count) {
    return real.cuGraphGetEdges_v2.present() ? real.cuGraphGetEdges_v2(graph, from, to, data, count)
           : real.cuGraphGetEdges.present()  ? real.cuGraphGetEdges(graph, from, to, count)
                                             : CUDA_ERROR_NOT_FOUND;
  };
  std::size_t count = 0;
  if (edges(nullptr, nullptr, nullptr, &count) != CUDA_SUCCESS || count == 0) {
    return before;
  }
  std::vector<CUgraphNode> from(count);
  std::vector<CUgraphNode> to(count);
  std::vector<CUgraphEdgeData> data(count);
  if (edges(from.data(), to.data(), data.data(), &count) != CUDA_SUCCESS) {
    return before;
  }
  std::unordered_map<CUgraphNode, std::size_t> numbers;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    numbers[nodes[i]] = i;
  }
  for (std::size_t i = 0; i < std::min(count, from.size()); ++i) {
    const auto one = numbers.find(from[i]);
    const auto other = numbers.find(to[i]);
    if (one != numbers.end() && other != numbers.end()) {
      before[other->second].push_back(one->second);
    }
  }
  return before;
}

// Every node after all that it depends on.
std::vector<std::size_t> sorted(const std::vector<std::vector<std::size_t>> &before) {
  std::vector<std::vector<std::size_t>> after(before.size());
  std::vector<std::size_t> open(before.size());
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < before.size(); ++i) {
    open[i] = before[i].size();
    for (const std::size_t each : before[i]) {
      after[each].push_back(i);
    }
    if (open[i] == 0) {
      order.push_back(i);
    }
  }
  for (std::size_t next = 0; next < order.size(); ++next) {
    for (const std::size_t each : after[order[next]]) {
      if (--open[each] == 0) {
        order.push_back(each);
      }
    }
  }
  return order;
}

void add(std::vector<GraphNeed> &needs, int device, std::uint64_t bytes) {
  const auto found =
      std::find_if(needs.begin(), needs.end(), [=](const GraphNeed &one) { return one.device == device; });
  if (found == needs.end()) {
    needs.push_back({device, bytes});
  } else {
    found->bytes += std::min(bytes, UINT64_MAX - found->bytes);
  }
}

std::vector<GraphNeed> sum_of(const std::vector<Step> &steps) {
  std::vector<GraphNeed> needs;
  for (const Step &step : steps) {
    if (!step.frees) {
      add(needs, step.device, step.bytes());
    }
  }
  return needs;
}

// The frees that come before a node, as bits.
class Ancestors {
 public:
  Ancestors(std::size_t nodes, std::size_t frees) : words_((frees + 63) / 64), bits_(nodes * words_) {}
  void add(std::size_t node, std::size_t free) { bits_[node * words_ + free / 64] |= std::uint64_t{1} << free % 64; }
  void inherit(std::size_t node, std::size_t from) {
    for (std::size_t i = 0; i < words_; ++i) {
      bits_[node * words_ + i] |= bits_[from * words_ + i];
    }
  }
  bool has(std::size_t node, std::size_t free) const {
    return (bits_[node * words_ + free / 64] >> free % 64 & 1) != 0;
  }

 private:
  std::size_t words_;
  std::vector<std::uint64_t> bits_;
};

// Where a driver places a graph's blocks of one device: in the first room that is free by then, or above all others. A
// block lies nowhere in parts (an H100: 64 MiB, freed, then 128 take 192; 128, then 64 take 128).
class Placement {
 public:
  // `is_over(free)`: whether the block with that number of its free is surely freed before.
  template <class IsOver>
  void place(std::uint64_t bytes, std::size_t free, const IsOver &is_over) {
    std::uint64_t at = 0;  // the end of what is occupied so far
    auto next = blocks_.begin();
    for (; next != blocks_.end(); ++next) {
      if (next->free != SIZE_MAX && is_over(next->free)) {
        continue;
      }
      if (next->begin >= at && next->begin - at >= bytes) {
        break;
      }
      at = std::max(at, next->end);
    }
    if (next == blocks_.end() && top_ - std::min(top_, at) < bytes) {
      at = top_;
    }
    const Block block{at, at + bytes, free};
    blocks_.insert(std::upper_bound(blocks_.begin(), blocks_.end(), block,
                                    [](const Block &one, const Block &other) { return one.begin < other.begin; }),
                   block);
    top_ = std::max(top_, block.end);
  }
  std::uint64_t top() const { return top_; }

 private:
  struct Block {
    std::uint64_t begin;
    std::uint64_t end;
    std::size_t free;  // number of its free; SIZE_MAX: none in this graph
  };
  std::vector<Block> blocks_;  // by begin; those of one place follow each other in time
  std::uint64_t top_ = 0;
};

std::vector<GraphNeed> most_at_once(const Shape &shape) {
  std::vector<std::size_t> first_of(shape.before.size(), shape.steps.size());  // step, by number of its node
  std::vector<std::size_t> free_of(shape.before.size(), SIZE_MAX);             // number of a free, by that of its node
  std::unordered_map<CUdeviceptr, std::size_t> free_at;                        // the same, by address
  std::size_t frees = 0;
  for (std::size_t i = shape.steps.size(); i-- > 0;) {
    const Step &step = shape.steps[i];
    first_of[step.node] = i;
    if (step.frees) {
      free_of[step.node] = frees;
      free_at[step.address] = frees++;
    }
  }
  const std::size_t allocations = shape.steps.size() - frees;
  if (frees == 0 || frees > kMostBits / shape.before.size() || allocations > kMostPlaced) {
    return sum_of(shape.steps);
  }
  Ancestors ancestors(shape.before.size(), frees);
  std::map<int, Placement> placements;
  for (const std::size_t node : sorted(shape.before)) {
    for (const std::size_t each : shape.before[node]) {
      ancestors.inherit(node, each);
      if (free_of[each] != SIZE_MAX) {
        ancestors.add(node, free_of[each]);
      }
    }
    for (std::size_t i = first_of[node]; i < shape.steps.size() && shape.steps[i].node == node; ++i) {
      const Step &step = shape.steps[i];
      if (!step.frees) {
        const auto free = step.address != 0 ? free_at.find(step.address) : free_at.end();
        placements[step.device].place(step.bytes(), free != free_at.end() ? free->second : SIZE_MAX,
                                      [&](std::size_t one) { return ancestors.has(node, one); });
      }
    }
  }
  std::vector<GraphNeed> needs;
  for (const auto &[device, placement] : placements) {
    needs.push_back({device, placement.top()});
  }
  return needs;
}

// What it leaves, and what it frees of others.
void note_ends(const std::vector<Step> &steps, GraphNeeds &needs) {
  std::unordered_map<CUdeviceptr, const Step *> own;
  for (const Step &step : steps) {
    if (!step.frees && step.address != 0) {
      own[step.address] = &step;
    }
  }
  for (const Step &step : steps) {
    if (step.frees && own.erase(step.address) == 0) {
      needs.frees.push_back(step.address);
    }
  }
  for (const auto &[address, step] : own) {
    needs.left.push_back({address, step->requested, step->device});
  }
}

void collect(CUgraph graph, int depth, GraphNeeds &needs) {
  const std::vector<CUgraphNode> nodes = nodes_of(graph);
  Shape shape{{}, steps_of(nodes, depth, needs)};
  if (!shape.steps.empty()) {
    note_ends(shape.steps, needs);
    shape.before = order_of(graph, nodes);
    needs.at_once = most_at_once(shape);
  }
}

void add_child(CUgraphNode node, std::size_t number, int depth, std::vector<Step> &steps, GraphNeeds &needs) {
  CUgraph child = nullptr;
  if (!real.cuGraphChildGraphNodeGetGraph.present() ||
      real.cuGraphChildGraphNodeGetGraph(node, &child) != CUDA_SUCCESS) {
    return;
  }
  GraphNeeds inner;
  collect(child, depth + 1, inner);
  for (const GraphNeed &need : inner.at_once) {
    steps.push_back({number, false, need.device, need.bytes, 0});
  }
  needs.left.insert(needs.left.end(), inner.left.begin(), inner.left.end());
  needs.frees.insert(needs.frees.end(), inner.frees.begin(), inner.frees.end());
}

}  // namespace

GraphNeeds graph_needs(CUgraph graph) {
  GraphNeeds needs;
  if (real.cuGraphNodeGetType.present() && real.cuGraphMemAllocNodeGetParams.present()) {
    collect(graph, 0, needs);
  }
  return needs;
}

}  // namespace ration::policy
