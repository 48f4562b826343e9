#include "tests/simcuda/graph_memory.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "tests/simcuda/bytes.h"
#include "tests/simcuda/entry.h"

namespace simcuda {
namespace {

constexpr std::uint64_t kStepBytes = std::uint64_t{32} << 20;  // a pool grows by multiples of it
constexpr std::uint64_t kRoom = 4;  // more addresses than other memory has: graphs may be built that never fit

AddressSpace *space_of(Device &device) {
  if (device.graphs == nullptr) device.graphs = AddressSpace::create(device.bytes * kRoom, false);
  return device.graphs;
}

void forget_reached(GraphPool &pool) {
  for (auto *uses : {&pool.launches, &pool.frees}) {
    std::erase_if(*uses, [](const GraphPool::Use &use) { return use.end.reached(); });
  }
}

bool grow(Device &device, std::uint64_t wanted) {
  GraphPool &pool = device.graph_pool;
  if (wanted <= pool.reserved) return true;
  const std::uint64_t step = round_up(wanted - pool.reserved, kStepBytes);
  if (!driver().machine->reserve(device.physical, step)) return false;
  about(step);
  pool.reserved += step;
  return true;
}

void shrink(Device &device, std::uint64_t reserved) {
  GraphPool &pool = device.graph_pool;
  if (reserved >= pool.reserved) return;
  driver().machine->release(device.physical, pool.reserved - reserved);
  about(pool.reserved - reserved);
  pool.reserved = reserved;
}

// The block is no allocation any more; its addresses stay its own.
std::shared_ptr<GraphBlock> forget(std::map<std::uint64_t, Allocation>::iterator allocation) {
  std::shared_ptr<GraphBlock> block = allocation->second.graph_block;
  block->live = false;
  block->device->graph_pool.held -= block->bytes;
  driver().allocations.erase(allocation);
  return block;
}

}  // namespace

GraphBlock::~GraphBlock() {
  if (bytes == 0) return;
  driver().graph_blocks.erase(address);
  device->graphs->give(address, bytes);
}

std::shared_ptr<GraphBlock> new_block(Device &device, std::uint64_t bytes) {
  if (bytes > UINT64_MAX - kUnitBytes) return nullptr;
  AddressSpace *const space = space_of(device);
  const auto address = space == nullptr ? std::nullopt : space->take(round_up(bytes, kUnitBytes));
  if (!address) return nullptr;
  auto block = std::make_shared<GraphBlock>();
  block->device = &device;
  block->address = *address;
  block->requested = bytes;
  block->bytes = round_up(bytes, kUnitBytes);
  driver().graph_blocks.emplace(*address, block.get());
  return block;
}

const GraphBlock *graph_block_at(std::uint64_t address) {
  const auto after = driver().graph_blocks.upper_bound(address);
  if (after == driver().graph_blocks.begin()) return nullptr;
  const GraphBlock *const block = std::prev(after)->second;
  return address - block->address < block->requested ? block : nullptr;
}

GraphNode *add_allocation(Graph &graph, std::shared_ptr<GraphBlock> block, std::vector<GraphNode *> after) {
  block->owner = graph.id;
  return add_node(graph, {.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC, .after = std::move(after), .block = std::move(block)});
}

GraphNode *add_free(Graph &graph, std::uint64_t address, std::vector<GraphNode *> after) {
  const auto found = driver().graph_blocks.find(address);
  if (found == driver().graph_blocks.end()) return nullptr;
  GraphBlock &block = *found->second;
  // Once in a graph, and never both in the one that allocates it and in another (cuda.h, cuGraphAddMemAllocNode).
  const bool barred = block.owner == graph.id ? !block.freed_in.empty() : block.freed_in.count(block.owner) != 0;
  if (barred || !block.freed_in.insert(graph.id).second) return nullptr;
  return add_node(graph, {.type = CU_GRAPH_NODE_TYPE_MEM_FREE,
                          .work = [&block] { discard(block); },
                          .after = std::move(after),
                          .block = block.shared_from_this()});
}

void discard(const GraphBlock &block) {
  block.device->graphs->discard(block.address, block.bytes);
}

CUresult provide(const std::vector<GraphNeed> &needs, const std::vector<std::shared_ptr<GraphBlock>> &live) {
  std::vector<std::uint64_t> before;
  for (const GraphNeed &need : needs) {
    GraphPool &pool = need.device->graph_pool;
    std::uint64_t others = pool.held;
    for (const auto &block : live) others -= block->device == need.device ? block->bytes : 0;
    before.push_back(pool.reserved);
    if (!grow(*need.device, others + need.most)) {
      for (std::size_t i = 0; i < before.size(); ++i) shrink(*needs[i].device, before[i]);
      return CUDA_ERROR_OUT_OF_MEMORY;
    }
  }
  for (const GraphNeed &need : needs) {
    GraphPool &pool = need.device->graph_pool;
    pool.reserved_high = std::max(pool.reserved_high, pool.reserved);
    pool.used_high = std::max(pool.used_high, pool.reserved);
  }
  return CUDA_SUCCESS;
}

std::vector<Mark> turn(const std::vector<GraphNeed> &needs) {
  std::vector<Mark> before;
  for (const GraphNeed &need : needs) {
    forget_reached(need.device->graph_pool);
    for (const auto *uses : {&need.device->graph_pool.launches, &need.device->graph_pool.frees}) {
      for (const GraphPool::Use &use : *uses) before.push_back(use.end);
    }
  }
  return before;
}

void take_turn(const std::vector<GraphNeed> &needs, const Mark &end) {
  for (const GraphNeed &need : needs) need.device->graph_pool.launches.push_back({end, need.most - need.left});
}

// cuMemFree waits for the launch.
void leave_allocated(const std::shared_ptr<GraphBlock> &block, const Mark &end) {
  block->live = true;
  block->device->graph_pool.held += block->bytes;
  driver().allocations.emplace(block->address, Allocation{.requested = block->requested,
                                                          .bytes = block->bytes,
                                                          .device = block->device,
                                                          .id = driver().next_id++,
                                                          .graph_block = block,
                                                          .allocated = end});
}

void free_by_launch(const GraphBlock &block, const Mark &end) {
  block.device->graph_pool.frees.push_back({end, block.bytes});
  forget(driver().allocations.find(block.address));
}

void free_graph_block(Lock &lock, std::map<std::uint64_t, Allocation>::iterator allocation,
                      const std::shared_ptr<Stream> &stream) {
  std::shared_ptr<GraphBlock> block = forget(allocation);
  GraphPool &pool = block->device->graph_pool;
  const std::uint64_t bytes = block->bytes;
  const Mark end = submit(lock, stream, Pace::kDelayed, [block = std::move(block)]() mutable {
    const Lock in_stream_order(driver().mutex);
    discard(*block);
    block.reset();
  });
  pool.frees.push_back({end, bytes});
}

void free_graph_block_at_once(std::map<std::uint64_t, Allocation>::iterator allocation) {
  discard(*forget(allocation));
}

void trim_graph_pool(Device &device) {
  GraphPool &pool = device.graph_pool;
  forget_reached(pool);
  std::uint64_t needed = 0;
  for (const GraphPool::Use &launch : pool.launches) needed = std::max(needed, launch.bytes);
  for (const GraphPool::Use &free : pool.frees) needed += free.bytes;
  shrink(device, round_up(pool.held + needed, kStepBytes));
}

void end_graph_memory(Device &device) {
  auto &all = driver().allocations;
  for (auto allocation = all.begin(); allocation != all.end();) {
    const auto next = std::next(allocation);
    if (allocation->second.graph_block != nullptr && allocation->second.device == &device) {
      free_graph_block_at_once(allocation);
    }
    allocation = next;
  }
  device.graph_pool.launches.clear();
  device.graph_pool.frees.clear();
  shrink(device, 0);
}

}  // namespace simcuda
