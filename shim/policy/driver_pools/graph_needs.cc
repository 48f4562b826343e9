#include "policy/driver_pools/graph_needs.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>

#include "base/saturating.h"
#include "policy/driver_pools/graph_steps.h"
#include "policy/driver_pools/stream_pools.h"

namespace ration::policy {
namespace {

using Kind = GraphStep::Kind;

// The most elementary steps that ordering a graph's blocks may cost. Beyond that, all blocks count as if they existed
// at once. A chain of nodes costs a few steps for each node; a wide graph costs its width for each edge.
constexpr std::uint64_t kMostWork = std::uint64_t{1} << 25;

constexpr std::size_t kNever = SIZE_MAX;

// What a graph takes beyond its blocks if a child graph allocates (an H100, driver 580: 64 MiB for 1 MiB in a child
// graph).
constexpr std::uint64_t kForInner = std::uint64_t{32} << 20;

std::uint64_t bytes_of(const GraphStep &step) {
  return StreamPools::whole_units(step.requested);
}

// The steps in an order in which each comes after all that it depends on. Steps in a cycle are missing.
std::vector<std::size_t> sorted(const GraphSteps &graph) {
  const std::size_t count = graph.steps.size();
  std::vector<std::vector<std::size_t>> after(count);
  std::vector<std::size_t> open(count);
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < count; ++i) {
    open[i] = graph.before[i].size();
    for (const std::size_t each : graph.before[i]) {
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

using Sums = std::map<int, std::uint64_t>;  // bytes, by device

Sums sum_of(const GraphSteps &graph) {
  Sums sums;
  for (const GraphStep &step : graph.steps) {
    if (step.kind == Kind::allocates) {
      std::uint64_t &sum = sums[step.device];
      sum = plus_or_most(sum, bytes_of(step));
    }
  }
  return sums;
}

// Knows which frees surely come before a step. Frees that depend on each other form a chain, so one number for each
// chain is enough.
class Frees {
 public:
  Frees(const GraphSteps &graph, std::size_t frees, std::uint64_t &work)
      : graph_(graph), seen_(graph.steps.size()), places_(frees), work_(work) {
    unread_.resize(graph.steps.size());
    for (const std::vector<std::size_t> &before : graph.before) {
      for (const std::size_t each : before) {
        ++unread_[each];
      }
    }
  }

  // REQUIRES: reached all that the step depends on.
  void reach(std::size_t step) {
    Seen seen;
    for (const std::size_t each : graph_.before[step]) {
      const bool last = --unread_[each] == 0;
      if (last && seen.size() < seen_[each].size()) {
        seen.swap(seen_[each]);
      }
      merge(seen, seen_[each]);
      if (last) {
        Seen().swap(seen_[each]);
      }
    }
    seen_[step] = std::move(seen);
  }
  // Notes that `step`, which was reached last, is the free with the number `free`.
  void end(std::size_t step, std::size_t free) {
    Seen &seen = seen_[step];
    std::size_t chain = 0;
    while (chain < seen.size() && seen[chain] != lengths_[chain]) {
      ++chain;
    }
    work_ += chain;
    if (chain == seen.size()) {  // it follows no chain's last free, so it begins a new chain
      chain = lengths_.size();
      lengths_.push_back(0);
      seen.resize(chain + 1);
    }
    places_[free] = {chain, lengths_[chain]};
    seen[chain] = ++lengths_[chain];
  }
  // Whether that free surely comes before `step`, which was reached last.
  bool ended_before(std::size_t step, std::size_t free) const {
    const Seen &seen = seen_[step];
    return free != kNever && places_[free].chain < seen.size() && places_[free].number < seen[places_[free].chain];
  }

 private:
  using Seen = std::vector<std::uint32_t>;  // for each chain, how many of its frees come before
  struct Place {
    std::size_t chain = kNever;  // not reached
    std::uint32_t number = 0;
  };
  void merge(Seen &into, const Seen &from) {
    into.resize(std::max(into.size(), from.size()));
    for (std::size_t i = 0; i < from.size(); ++i) {
      into[i] = std::max(into[i], from[i]);
    }
    work_ += 1 + from.size();
  }

  const GraphSteps &graph_;
  std::vector<Seen> seen_;              // by step; emptied once all that depend on it are reached
  std::vector<std::size_t> unread_;     // by step: how many steps that depend on it are not reached yet
  std::vector<std::uint32_t> lengths_;  // by chain
  std::vector<Place> places_;           // by number of the free
  std::uint64_t &work_;
};

// Models where the driver places a graph's blocks of one device: in the first gap that is free by then, or above all
// others. A block is never split (an H100 takes 192 MiB for 64 MiB, freed, then 128; it takes 128 MiB for 128, freed,
// then 64).
class GraphPlacement {
 public:
  // `free`: the number of the block's free. is_over(number): whether an earlier block with that free is surely freed
  // before.
  template <class IsOver>
  void place(std::uint64_t bytes, std::size_t free, std::uint64_t &work, const IsOver &is_over) {
    std::uint64_t at = 0;  // the end of the occupied part so far
    auto next = pieces_.begin();
    for (; next != pieces_.end() && (next->first < at || next->first - at < bytes); ++next) {
      at = is_over(next->second.free) ? at : std::max(at, next->second.end);
      ++work;
    }
    if (next == pieces_.end() && minus_or_zero(top_, at) < bytes) {
      at = top_;
    }
    cut(at, at + bytes, next);
    pieces_.emplace(at, Piece{at + bytes, free});
    top_ = std::max(top_, at + bytes);
  }
  std::uint64_t top() const { return top_; }

 private:
  struct Piece {
    std::uint64_t end;
    std::size_t free;  // number of its block's free
  };
  using Pieces = std::multimap<std::uint64_t, Piece>;  // by begin

  // Cuts [begin, end) out of the earlier pieces, which are all over when the new block begins, and so also when that
  // one is.
  void cut(std::uint64_t begin, std::uint64_t end, Pieces::iterator last) {
    for (auto each = pieces_.begin(); each != last;) {
      const auto piece = each++;
      if (piece->second.end <= begin || piece->first >= end) {
        continue;
      }
      if (piece->second.end > end) {
        pieces_.emplace_hint(each, end, piece->second);
      }
      if (piece->first < begin) {
        piece->second.end = begin;
      } else {
        pieces_.erase(piece);
      }
    }
  }

  Pieces pieces_;
  std::uint64_t top_ = 0;
};

// For each block that the graph allocates, by address: the number of its free, or kNever.
using OwnBlocks = std::unordered_map<CUdeviceptr, std::size_t>;

OwnBlocks own_blocks(const GraphSteps &graph) {
  OwnBlocks blocks;
  std::size_t frees = 0;
  for (const GraphStep &step : graph.steps) {
    if (step.kind == Kind::allocates && step.address != 0) {
      blocks[step.address] = kNever;
    }
  }
  for (const GraphStep &step : graph.steps) {
    if (const auto block = blocks.find(step.address); step.kind == Kind::frees && block != blocks.end()) {
      block->second = block->second == kNever ? frees++ : block->second;
    }
  }
  return blocks;
}

std::size_t free_of(const OwnBlocks &blocks, CUdeviceptr address) {
  const auto block = blocks.find(address);
  return block != blocks.end() ? block->second : kNever;
}

// The most bytes that each device needs at once. nullopt: the dependencies have a cycle, or ordering them would cost
// too much.
std::optional<Sums> most_at_once(const GraphSteps &graph, const OwnBlocks &own) {
  const std::vector<std::size_t> order = sorted(graph);
  if (order.size() != graph.steps.size()) {
    return std::nullopt;
  }
  std::uint64_t work = 0;
  Frees frees(graph, own.size(), work);
  std::map<int, GraphPlacement> placements;
  for (const std::size_t each : order) {
    const GraphStep &step = graph.steps[each];
    const std::size_t free = free_of(own, step.address);
    frees.reach(each);
    if (step.kind == Kind::frees && free != kNever) {
      frees.end(each, free);
    } else if (step.kind == Kind::allocates) {
      placements[step.device].place(bytes_of(step), free, work,
                                    [&](std::size_t one) { return frees.ended_before(each, one); });
    }
    if (work > kMostWork) {
      return std::nullopt;
    }
  }
  Sums tops;
  for (const auto &[device, placement] : placements) {
    tops[device] = placement.top();
  }
  return tops;
}

bool allocates_inside(const GraphSteps &graph, int device) {
  return std::any_of(graph.steps.begin(), graph.steps.end(), [device](const GraphStep &step) {
    return step.inner && step.kind == Kind::allocates && step.device == device;
  });
}

// Notes the blocks that the graph leaves, and those allocated elsewhere that it frees.
void note_ends(const GraphSteps &graph, const OwnBlocks &own, GraphNeeds &needs) {
  for (const GraphStep &step : graph.steps) {
    if (step.kind == Kind::frees && own.find(step.address) == own.end()) {
      needs.frees.push_back(step.address);
    } else if (step.kind == Kind::allocates && step.address != 0 && free_of(own, step.address) == kNever) {
      needs.left.push_back({step.address, step.requested, step.device});
    }
  }
}

}  // namespace

GraphNeeds graph_needs(CUgraph graph) {
  GraphNeeds needs;
  const GraphSteps steps = steps_of(graph);
  if (!steps.steps.empty()) {
    const OwnBlocks own = own_blocks(steps);
    note_ends(steps, own, needs);
    const std::optional<Sums> least = most_at_once(steps, own);
    for (const auto &[device, bytes] : least ? *least : sum_of(steps)) {
      needs.at_once.push_back({device, plus_or_most(bytes, allocates_inside(steps, device) ? kForInner : 0)});
    }
  }
  return needs;
}

}  // namespace ration::policy
