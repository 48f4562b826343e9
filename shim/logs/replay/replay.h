// Replays a trace on the pool: whether it fits, its placements, its smallest arena and its speed.
// Layer: logs. Threads: calls are independent; measure() starts its own threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iosfwd>
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

struct Driver {
  DriverCalls preallocation;
  DriverCalls requests;
  std::size_t last_operation = 0;  // that called the driver, counted from 1
  std::uint64_t stitched = 0;      // blocks
  std::uint64_t revived = 0;       // of those, blocks in a view that was there already
};

// Of the one slab of an arena. Drivers often place the first allocation there.
constexpr std::uint64_t kArenaAddress = 0x7f0000000000;

// Replays the trace on one slab of `arena_bytes`, or on granules of so many bytes together; returns where it stopped,
// or nothing when it completed. Writes one line per operation to `placements`: `f ID`, or `a ID OFFSET BYTES` (offset
// in the slab, bytes as requested). On granules that is `a ID BYTES G0 G1 ...`: the pages of 2 MiB in the order of the
// block's bytes, `G:OFFSET` for a part of one, from there to the page's or the block's end. ID is the block's number in
// the trace file.
std::optional<Stop> replay(const Trace &trace, std::uint64_t arena_bytes, Backing backing = Backing::slab,
                           std::ostream *placements = nullptr, Driver *driver = nullptr);

// The smallest arena in which the trace completes, to 0.05 %; that arena has been replayed. Throws TraceError where
// none is large enough.
std::uint64_t find_minimum(const Trace &trace, Backing backing = Backing::slab);

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
