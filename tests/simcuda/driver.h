// The state of the simulated driver in this process: made by cuInit, never destroyed, void in a forked child.
// Layer: settings, machine, address_space, context, stream, vmm. Threads: all fields but the constant ones under
// `mutex`.
#pragma once
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "tests/simcuda/address_space.h"
#include "tests/simcuda/context.h"
#include "tests/simcuda/machine.h"
#include "tests/simcuda/managed.h"
#include "tests/simcuda/settings.h"
#include "tests/simcuda/stream.h"
#include "tests/simcuda/vmm.h"

namespace simcuda {

inline constexpr int kDriverVersion = 13000;

struct MemPool;  // mem_pool.h

struct Device {
  unsigned physical = 0;  // index on the machine
  std::uint64_t bytes = 0;
  CUuuid uuid = {};
  AddressSpace *space = nullptr;    // from the first context on
  AddressSpace *managed = nullptr;  // from the first managed allocation on
  std::unique_ptr<Context> primary;
  unsigned primary_retained = 0;
  std::shared_ptr<MemPool> default_pool;  // from the first question on
  std::shared_ptr<MemPool> current_pool;  // null: the default one
};

// Another process's memory: opened so many times, and where it comes from.
struct Import {
  std::uint64_t inode = 0;
  std::uint64_t id = 0;  // there
  unsigned opened = 1;
};

struct Allocation {
  std::uint64_t requested = 0;
  std::uint64_t bytes = 0;  // what it costs
  Device *device = nullptr;
  Context *context = nullptr;  // null: a pool's memory is no context's
  std::uint64_t id = 0;
  bool freeing = false;  // a free is on its way: no second one
  bool sync_memops = false;
  bool published = false;  // other processes may have it open
  std::optional<Import> import = {};
  std::shared_ptr<MemPool> pool = {};
  Mark behind = {};                            // the free that a pool's block comes behind in its stream
  std::unique_ptr<Advised> managed = nullptr;  // null: memory of the device alone
};

struct HostBlock {
  std::size_t bytes = 0;
  std::size_t mapped = 0;  // 0: registered, the memory is the program's
  unsigned flags = 0;
  Context *context = nullptr;
  std::uint64_t id = 0;
};

struct Capture;  // capture.h
struct Event;
struct Graph;      // graph.h
struct GraphExec;  // graph.h
struct Image;      // code.h: a module or library
struct Function;   // code.h

struct Driver {
  const Settings *settings = nullptr;
  Machine *machine = nullptr;
  std::vector<Device> devices;

  std::mutex mutex;
  std::condition_variable progress;  // some operation of some stream has completed
  std::uint64_t next_id = 1;
  std::unordered_map<const void *, std::unique_ptr<Context>> contexts;  // created ones, dead or alive
  std::unordered_map<const void *, Context *> green_contexts;           // by their own handle
  std::map<std::uint64_t, Allocation> allocations;
  std::unordered_map<const void *, std::shared_ptr<MemPool>> mem_pools;  // destroyed ones until they are empty
  std::map<std::uintptr_t, HostBlock> host_blocks;
  VirtualMemory virtual_memory;
  std::unordered_map<const void *, std::shared_ptr<Stream>> streams;
  std::unordered_map<const void *, std::shared_ptr<Event>> events;
  std::vector<std::shared_ptr<Capture>> captures;  // those that go on, spoilt ones included
  std::unordered_map<const void *, std::shared_ptr<Graph>> graphs;
  std::unordered_map<const void *, std::shared_ptr<GraphExec>> graph_execs;
  std::unordered_map<const void *, std::shared_ptr<Image>> images;
  std::unordered_map<const void *, std::shared_ptr<Function>> functions;
};

// REQUIRES: phase() == kReady.
Driver &driver();

enum class Phase { kFresh, kReady, kForked };
// kForked: initialised in a parent process; CUDA is of no use in this one.
Phase phase();

CUresult device_of(CUdevice ordinal, Device **device);
// Gives the device its addresses, where it has none yet. False: there are none left.
bool has_addresses(Device &device);
int ordinal_of(const Device &device);

// The live allocation that holds the address; end() when none does. Under the lock.
std::map<std::uint64_t, Allocation>::iterator allocation_at(std::uint64_t address);
std::map<std::uintptr_t, HostBlock>::iterator host_block_at(std::uint64_t address);
// Device memory for a context, as cuMemAlloc gives it. Under the lock. OUT_OF_MEMORY leaves *address alone.
CUresult allocate(Context &context, std::uint64_t bytes, std::uint64_t *address);
// The same out of the given addresses, at a multiple of granule bytes.
CUresult allocate_in(AddressSpace &space, Context &context, std::uint64_t granule, std::uint64_t bytes,
                     std::uint64_t *address);
// A free in two steps, what has to be waited for in between. INVALID_VALUE: no block begins there, or it is being
// freed.
CUresult begin_free(std::uint64_t address, std::map<std::uint64_t, Allocation>::iterator *block);
void finish_free(std::uint64_t address, std::uint64_t id);
void release_allocation(std::map<std::uint64_t, Allocation>::iterator allocation);
void release_memory_of(Context &context);
void forget_events_of(Context &context);
void forget_code_of(Context &context);

// Where the bytes of a device address are; null outside every device's addresses and all reserved ones.
std::byte *view_of(std::uint64_t address);

// A driver without context functions works in device 0's primary context (variant_*.cc).
extern const bool kImpliedContext;

}  // namespace simcuda
