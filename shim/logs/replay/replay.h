// The speed of the pool with a trace.
// Layer: logs. Threads: calls are independent; measure() starts its own threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "logs/replay/trace.h"

namespace ration::pool::replay {

// The operation that found no room.
struct Stop {
  std::size_t operation;  // counted from 1
  std::uint64_t bytes;    // requested
  std::uint64_t largest_free;
};

enum class Backing { slab, vmm };

// What a replay on granules asked of the driver, and what that would cost by published figures (granule_costs.h).
struct DriverCalls {
  std::uint64_t create = 0;
  std::uint64_t release = 0;
  std::uint64_t map = 0;
  std::uint64_t access = 0;  // mappings that it was given for
  std::uint64_t unmap = 0;   // mappings
  double us = 0;             // of all
};

// Of the one slab of an arena. Drivers often place the first allocation there.
constexpr std::uint64_t kArenaAddress = 0x7f0000000000;

struct Measurement {
  std::optional<Stop> stop;             // of the first copy that stopped; the rest is then invalid
  std::vector<std::uint64_t> alloc_ns;  // sorted, without the clock's own cost
  std::vector<std::uint64_t> free_ns;
  // Wall time of one thread per two operations, without a clock between them, in the fastest of five passes.
  double pair_ns_mean = 0;
  double metadata_bytes_per_block = 0;  // host memory of the pool / peak of live blocks
  std::uint64_t clock_ns = 0;           // cost of one clock reading
};

// Each of `threads` threads replays the whole trace with its own blocks on one SharedPool with one slab, or granules,
// of `arena_bytes`. First with a clock around every operation, then without.
Measurement measure(const Trace &trace, std::uint64_t arena_bytes, unsigned threads, Backing backing = Backing::slab);

}  // namespace ration::pool::replay
