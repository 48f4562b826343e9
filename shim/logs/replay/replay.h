// Measures how fast the pool serves a trace.
// Layer: logs. Threads: calls are independent; measure() starts its own threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "logs/replay/trace.h"

namespace ration::pool::replay {

// The operation for which there was no room.
struct Stop {
  std::size_t operation;  // counted from 1
  std::uint64_t bytes;    // requested
  std::uint64_t largest_free;
};

enum class Backing { slab, vmm };

// The driver calls of a replay with granules, and their costs according to published figures (granule_costs.h).
struct DriverCalls {
  std::uint64_t create = 0;
  std::uint64_t release = 0;
  std::uint64_t map = 0;
  std::uint64_t access = 0;  // the number of mappings that were given access
  std::uint64_t unmap = 0;   // the number of mappings that were removed
  double us = 0;             // the cost of all calls in microseconds
};

// The address of an arena's single slab, where drivers often place the first allocation.
constexpr std::uint64_t kArenaAddress = 0x7f0000000000;

struct Measurement {
  std::optional<Stop> stop;             // for the first thread that found no room; the other figures are then invalid
  std::vector<std::uint64_t> alloc_ns;  // sorted, without the cost of reading the clock
  std::vector<std::uint64_t> free_ns;
  // The mean wall time of one thread for two operations, without clock readings between them, in the fastest of five
  // passes.
  double pair_ns_mean = 0;
  double metadata_bytes_per_block = 0;  // the pool's host memory divided by the peak number of live blocks
  std::uint64_t clock_ns = 0;           // the cost of one clock reading
};

// Each of `threads` threads replays the whole trace with its own blocks, in one SharedPool with `arena_bytes` in one
// slab or in granules. The first run reads the clock around every operation; the others do not.
Measurement measure(const Trace &trace, std::uint64_t arena_bytes, unsigned threads, Backing backing = Backing::slab);

}  // namespace ration::pool::replay
