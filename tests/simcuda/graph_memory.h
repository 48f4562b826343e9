// Memory that graphs allocate. A block has addresses and bytes of its own for as long as a graph can allocate it. The
// device is charged not for these bytes, but for the part of its GraphPool that launches need together.
// Layer: graph_pool.h, driver.h. Threads: under Driver::mutex.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "tests/simcuda/driver.h"
#include "tests/simcuda/graph.h"

namespace simcuda {

// Owns: its addresses. Its graphs, their executable copies and its live allocation hold a reference each.
struct GraphBlock : std::enable_shared_from_this<GraphBlock> {
  Device *device = nullptr;
  std::uint64_t address = 0;
  std::uint64_t requested = 0;
  std::uint64_t bytes = 0;           // whole granules
  std::uint64_t owner = 0;           // the id of the graph that allocates it
  std::set<std::uint64_t> freed_in;  // ids of graphs that have a node that frees it
  bool live = false;                 // a launch has left the block allocated
  std::vector<CUmemAccessDesc> access;
  CUmemPoolProps properties = {};

  GraphBlock() = default;
  ~GraphBlock();
  GraphBlock(const GraphBlock &) = delete;
  GraphBlock &operator=(const GraphBlock &) = delete;
};

// Returns null if no address space is left. REQUIRES: bytes != 0.
std::shared_ptr<GraphBlock> new_block(Device &device, std::uint64_t bytes);
// The block that contains the address, whether allocated at present or not; null if there is none.
const GraphBlock *graph_block_at(std::uint64_t address);
// The two nodes of a block, each ordered after `after`. add_free() returns null if the graph may not free the block.
GraphNode *add_allocation(Graph &graph, std::shared_ptr<GraphBlock> block, std::vector<GraphNode *> after);
GraphNode *add_free(Graph &graph, std::uint64_t address, std::vector<GraphNode *> after);
// Discards the block's bytes.
void discard(const GraphBlock &block);

// The memory that a launch needs on one device: the peak, and the part for blocks that it leaves allocated.
struct GraphNeed {
  Device *device = nullptr;
  std::uint64_t most = 0;
  std::uint64_t left = 0;
};
// Grows the pools so that each need fits in addition to the memory held. `live`: blocks that the launch itself frees
// first. On OUT_OF_MEMORY, nothing has changed.
CUresult provide(const std::vector<GraphNeed> &needs, const std::vector<std::shared_ptr<GraphBlock>> &live);
// The work that a launch must wait for: everything else that uses its devices' pools.
std::vector<Mark> turn(const std::vector<GraphNeed> &needs);
void take_turn(const std::vector<GraphNeed> &needs, const Mark &end);

// Notes that a launch that ends at the mark leaves the block allocated, or frees it.
void leave_allocated(const std::shared_ptr<GraphBlock> &block, const Mark &end);
void free_by_launch(const GraphBlock &block, const Mark &end);
// The program's frees of a graph's block, which work like those of a memory pool's block.
void free_graph_block(Lock &lock, std::map<std::uint64_t, Allocation>::iterator block,
                      const std::shared_ptr<Stream> &stream);
void free_graph_block_at_once(std::map<std::uint64_t, Allocation>::iterator block);

// Gives back memory that neither queued work nor a live block needs.
void trim_graph_pool(Device &device);
// Called when the device's last context has ended, and with it all memory of graphs.
void end_graph_memory(Device &device);

}  // namespace simcuda
