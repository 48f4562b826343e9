// Runs a trace through the pool: does it fit, where does every block go, how small an arena will do, how fast is it.
// Layer: the replay program. Threads: each call stands alone; measure() starts its own threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <optional>
#include <vector>

#include "pool/replay/trace.h"

namespace ration::pool::replay {

// Where a trace stopped for want of room.
struct Stop {
  std::size_t operation;  // counted from 1
  std::uint64_t bytes;    // that it asked for
  std::uint64_t largest_free;
};

// Replays the trace on one slab of `arena_bytes`; where it stopped, or nothing when it completed. With `placements`,
// one line per operation goes there: `a ID OFFSET BYTES` (offset in the arena, bytes as requested) or `f ID`, with the
// block's own number in its file as ID.
std::optional<Stop> replay(const Trace &trace, std::uint64_t arena_bytes, std::ostream *placements = nullptr);

// The smallest arena in which the trace completes, to 0.05 %; itself replayed to completion. Throws TraceError where
// none is large enough.
std::uint64_t find_minimum(const Trace &trace);

struct Measurement {
  std::optional<Stop> stop;             // of the first copy that stopped; the rest is void then
  std::vector<std::uint64_t> alloc_ns;  // sorted, the clock's own cost taken off
  std::vector<std::uint64_t> free_ns;
  // Wall time of one thread per two operations, no clock between them, in the least disturbed of five passes.
  double pair_ns_mean = 0;
  double metadata_bytes_per_block = 0;  // host memory of the pool / most blocks live at once
  std::uint64_t clock_ns = 0;           // what was taken off
};

// `threads` threads, each replaying the whole trace on ids of its own, against one shared pool behind its lock, with
// one slab of `arena_bytes` for all. First with a clock around every operation, then with none.
Measurement measure(const Trace &trace, std::uint64_t arena_bytes, unsigned threads);

}  // namespace ration::pool::replay
