#include "tests/simcuda/graph_plan.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>

namespace simcuda {
namespace {

using Indices = std::vector<std::size_t>;

// What a launch takes beyond the blocks if a child graph allocates (H100, driver 580.159: 64 MiB for 1 MiB there).
constexpr std::uint64_t kForInner = std::uint64_t{32} << 20;

// The oldest node first of those that have nothing left to wait for. Nodes in a cycle are missing.
std::vector<const GraphNode *> in_order(const Graph &graph) {
  std::unordered_map<const GraphNode *, std::size_t> index;
  for (const auto &node : graph.nodes) index.emplace(node.get(), index.size());
  std::vector<std::size_t> open(graph.nodes.size());
  std::vector<Indices> followers(graph.nodes.size());
  std::set<std::size_t> ready;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    open[i] = graph.nodes[i]->after.size();
    if (open[i] == 0) ready.insert(i);
    for (const GraphNode *before : graph.nodes[i]->after) followers[index.at(before)].push_back(i);
  }
  std::vector<const GraphNode *> order;
  while (!ready.empty()) {
    const std::size_t next = *ready.begin();
    ready.erase(ready.begin());
    order.push_back(graph.nodes[next].get());
    for (const std::size_t follower : followers[next]) {
      if (--open[follower] == 0) ready.insert(follower);
    }
  }
  return order;
}

// A child graph's first nodes follow what its node follows; its node itself is the step after all of them.
bool append(const Graph &graph, const Indices &entry, std::vector<GraphStep> &steps, bool inner = false) {
  const std::vector<const GraphNode *> order = in_order(graph);
  if (order.size() != graph.nodes.size()) return false;
  std::unordered_map<const GraphNode *, std::size_t> place;
  for (const GraphNode *node : order) {
    Indices after = node->after.empty() ? entry : Indices{};
    for (const GraphNode *before : node->after) after.push_back(place.at(before));
    if (node->child != nullptr) {
      std::size_t next = steps.size();
      if (!append(*node->child, after, steps, true)) return false;
      while (next < steps.size()) after.push_back(next++);
    }
    place[node] = steps.size();
    steps.push_back({node, std::move(after), inner});
  }
  return true;
}

std::vector<bool> all_before(const std::vector<GraphStep> &steps, std::size_t step) {
  std::vector<bool> before(steps.size());
  Indices open = steps[step].after;
  while (!open.empty()) {
    const std::size_t next = open.back();
    open.pop_back();
    if (before[next]) continue;
    before[next] = true;
    open.insert(open.end(), steps[next].after.begin(), steps[next].after.end());
  }
  return before;
}

struct Life {
  std::shared_ptr<GraphBlock> block;
  std::optional<std::size_t> allocated, freed;  // the steps
  std::uint64_t offset = 0;
};

// In the order of the first step of each.
std::vector<Life> lives_in(const std::vector<GraphStep> &steps) {
  std::vector<Life> lives;
  std::map<const GraphBlock *, std::size_t> known;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const auto &block = steps[i].node->block;
    if (block == nullptr) continue;
    const auto [place, fresh] = known.emplace(block.get(), lives.size());
    if (fresh) lives.push_back({block, {}, {}, 0});
    (steps[i].node->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC ? lives[place->second].allocated
                                                         : lives[place->second].freed) = i;
  }
  return lives;
}

// The first place of the device's memory that no earlier life may still occupy, or above all of them: a block lies
// nowhere in parts (an H100: 64 MiB, freed, then 128 take 192). Returns the end of the life.
std::uint64_t place(Life &life, const std::vector<Life> &placed, const std::vector<bool> &before) {
  std::map<std::uint64_t, std::uint64_t> taken;  // first → end
  std::uint64_t top = 0;
  for (const Life &other : placed) {
    if (other.block->device != life.block->device) continue;
    top = std::max(top, other.offset + other.block->bytes);
    if (other.freed && before[*other.freed]) continue;
    std::uint64_t &end = taken[other.offset];
    end = std::max(end, other.offset + other.block->bytes);
  }
  const auto reaches = [&](std::uint64_t place) { return life.offset + life.block->bytes > place; };
  for (const auto &[first, end] : taken) {
    if (!reaches(first)) return life.offset + life.block->bytes;
    life.offset = std::max(life.offset, end);
  }
  if (reaches(top)) life.offset = top;
  return life.offset + life.block->bytes;
}

GraphNeed &need_of(std::vector<GraphNeed> &needs, Device *device) {
  for (GraphNeed &need : needs) {
    if (need.device == device) return need;
  }
  return needs.emplace_back(GraphNeed{.device = device});
}

bool plan_memory(const std::vector<GraphStep> &steps, GraphPlan &plan) {
  std::vector<Life> placed;
  for (Life &life : lives_in(steps)) {
    GraphNeed &need = need_of(plan.needs, life.block->device);
    if (!life.allocated) {
      plan.expected.push_back(life.block);
      continue;
    }
    if (life.freed && !all_before(steps, *life.freed)[*life.allocated]) return false;
    need.most = std::max(need.most, place(life, placed, all_before(steps, *life.allocated)));
    if (!life.freed) {
      plan.left.push_back(life.block);
      need.left += life.block->bytes;
    }
    placed.push_back(std::move(life));
  }
  for (GraphNeed &need : plan.needs) {
    const bool inner = std::any_of(placed.begin(), placed.end(), [&](const Life &life) {
      return life.block->device == need.device && steps[*life.allocated].inner;
    });
    if (inner) need.most += kForInner;
  }
  return true;
}

}  // namespace

std::optional<std::vector<GraphStep>> steps_of(const Graph &graph) {
  std::vector<GraphStep> steps;
  if (!append(graph, {}, steps)) return std::nullopt;
  return steps;
}

std::optional<GraphPlan> plan_of(const Graph &graph) {
  const auto steps = steps_of(graph);
  GraphPlan plan;
  if (!steps || !plan_memory(*steps, plan)) return std::nullopt;
  for (const GraphStep &step : *steps) {
    if (step.node->work) plan.works.push_back(step.node->work);
  }
  return plan;
}

}  // namespace simcuda
