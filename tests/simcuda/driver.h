// The state of the simulated driver in this process. Created by cuInit, never destroyed, and void in a forked child.
// Layer: settings, machine, address_space, context, stream, vmm. Threads: all fields except constant ones under
// `mutex`.
#pragma once
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "tests/simcuda/address_space.h"
#include "tests/simcuda/context.h"
#include "tests/simcuda/graph_pool.h"
#include "tests/simcuda/machine.h"
#include "tests/simcuda/managed.h"
#include "tests/simcuda/settings.h"
#include "tests/simcuda/stream.h"
#include "tests/simcuda/version.h"
#include "tests/simcuda/vmm.h"

namespace simcuda {

struct GraphBlock;  // graph_memory.h
struct MemPool;     // mem_pool.h

struct Device {
  unsigned physical = 0;  // index on the machine
  std::uint64_t bytes = 0;
  CUuuid uuid = {};
  AddressSpace *space = nullptr;     // created with the first context
  AddressSpace *managed = nullptr;   // created at the first managed allocation
  AddressSpace *graphs = nullptr;    // of memory that graphs allocate; created at the first such node
  AddressSpace *legacy32 = nullptr;  // addresses below 4 GiB, created at the first request of a 32-bit export
  std::unique_ptr<Context> primary;
  unsigned primary_retained = 0;
  std::shared_ptr<MemPool> default_pool;  // created at the first query
  std::shared_ptr<MemPool> current_pool;  // null: the default pool
  GraphPool graph_pool;
};

// Memory imported from another process: its open count and its origin.
struct Import {
  std::uint64_t inode = 0;
  std::uint64_t id = 0;  // the id in the exporting process
  unsigned opened = 1;
};

struct Allocation {
  std::uint64_t requested = 0;
  std::uint64_t bytes = 0;  // charged bytes
  Device *device = nullptr;
  Context *context = nullptr;  // null: memory of a pool or of a graph belongs to no context
  std::uint64_t id = 0;
  bool freeing = false;      // a free is in progress, so a second free is refused
  bool sync_memops = false;  // synchronous copies and fills of it wait
  bool published = false;    // other processes may have it open
  std::optional<Import> import = {};
  std::shared_ptr<MemPool> pool = {};
  std::shared_ptr<GraphBlock> graph_block = {};  // also of no context
  Mark allocated = {};  // block of a pool: its stream's position then; block of a graph: the launch that allocates it
  std::unique_ptr<Advised> managed = nullptr;  // null: device memory only
};

struct HostBlock {
  std::size_t bytes = 0;
  std::size_t mapped = 0;  // 0: registered memory that belongs to the program
  unsigned flags = 0;
  Context *context = nullptr;
  std::uint64_t id = 0;
  Device *device = nullptr;  // the device whose memory it is, if the device shares the host's memory
};

struct Array;        // array.h
struct ArrayMemory;  // array.h
struct Capture;      // capture.h
struct Event;
struct Graph;      // graph.h
struct GraphExec;  // graph_exec.h
struct GraphNode;  // graph.h
struct Image;      // code.h: a module or library
struct Function;   // code.h

struct Driver {
  const Settings *settings = nullptr;
  Machine *machine = nullptr;
  std::vector<Device> devices;

  std::mutex mutex;
  std::condition_variable progress;  // signals that an operation of any stream has completed
  std::uint64_t next_id = 1;
  std::unordered_map<const void *, std::unique_ptr<Context>> contexts;  // every context created, dead or alive
  std::unordered_map<const void *, Context *> green_contexts;           // by the green context's own handle
  std::map<std::uint64_t, Allocation> allocations;
  std::unordered_map<const void *, std::shared_ptr<MemPool>> mem_pools;  // destroyed pools until they are empty
  std::map<std::uintptr_t, HostBlock> host_blocks;
  VirtualMemory virtual_memory;
  std::unordered_map<const void *, std::shared_ptr<ArrayMemory>> array_memory;
  std::unordered_map<const void *, Array *> arrays;  // includes levels and planes of other arrays
  std::unordered_map<const void *, std::shared_ptr<Stream>> streams;
  std::unordered_map<const void *, std::shared_ptr<Event>> events;
  std::vector<std::shared_ptr<Capture>> captures;  // includes invalidated captures that have not ended
  std::unordered_map<const void *, std::shared_ptr<Graph>> graphs;
  std::unordered_set<const GraphNode *> graph_nodes;  // all nodes that have a handle
  std::unordered_map<const void *, std::shared_ptr<GraphExec>> graph_execs;
  std::map<std::uint64_t, GraphBlock *> graph_blocks;  // by address, allocated at present or not
  std::unordered_map<const void *, std::shared_ptr<Image>> images;
  std::unordered_map<const void *, std::shared_ptr<Function>> functions;
};

// REQUIRES: phase() == kReady.
Driver &driver();

enum class Phase { kFresh, kReady, kForked };
// kForked: initialised in a parent process; CUDA is unusable in this process.
Phase phase();

CUresult device_of(CUdevice ordinal, Device **device);
// Reserves the device's addresses if it has none yet. Returns false if no address space is left.
bool has_addresses(Device &device);
int ordinal_of(const Device &device);

// The live allocation that contains the address; end() if there is none. Under the lock.
std::map<std::uint64_t, Allocation>::iterator allocation_at(std::uint64_t address);
std::map<std::uintptr_t, HostBlock>::iterator host_block_at(std::uint64_t address);
// Allocates device memory for a context, as cuMemAlloc does. Under the lock. OUT_OF_MEMORY leaves *address unchanged.
CUresult allocate(Context &context, std::uint64_t bytes, std::uint64_t *address, bool legacy32 = false);
// The same from the given address space, at a multiple of `granule` bytes.
CUresult allocate_in(AddressSpace *space, Context &context, std::uint64_t granule, std::uint64_t bytes,
                     std::uint64_t *address);
// A free in two steps, so that the caller can wait in between. INVALID_VALUE: no block begins there, or it is already
// being freed.
CUresult begin_free(std::uint64_t address, std::map<std::uint64_t, Allocation>::iterator *block);
void finish_free(std::uint64_t address, std::uint64_t id);
// Take or return the memory of a block: whole granules, at addresses of `space`.
CUresult take_memory(Device &device, AddressSpace *space, std::uint64_t bytes, std::uint64_t *address);
void give_memory(Device &device, std::uint64_t address, std::uint64_t bytes);
void release_allocation(std::map<std::uint64_t, Allocation>::iterator allocation);
void release_memory_of(Context &context);
void release_arrays_of(Context &context);
void forget_events_of(Context &context);
void forget_code_of(Context &context);

// The simulator's view of a device address; null if it is outside all devices' addresses and all reserved ranges.
std::byte *view_of(std::uint64_t address);

// A driver without context functions works in device 0's primary context (variant_*.cc).
extern const bool kImpliedContext;

}  // namespace simcuda
