// Replays a trace on the pool to find whether the trace fits, where its blocks go, and the smallest arena for it. The
// text format of a trace: `a ID BYTES` and `f ID` lines. Layer: the replay program. Threads: calls are independent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>

#include "logs/replay/replay.h"

namespace ration::pool::replay {

// The trace in `text`. Throws TraceError for a line that is neither operation nor comment, an id that is allocated
// twice or freed while not live, or more live bytes than a pool can hold. `path` is only for messages.
Trace parse_trace(const std::string &path, std::string_view text);

// Reads the trace from a file.
Trace read_trace(const std::string &path);

struct Driver {
  DriverCalls preallocation;
  DriverCalls requests;
  std::size_t last_operation = 0;  // the last operation that called the driver, counted from 1
  std::uint64_t stitched = 0;      // blocks
  std::uint64_t revived = 0;       // of these, the blocks in a view that already existed
};

// Replays the trace on one slab of `arena_bytes`, or on granules of that size in total. Returns where the trace
// stopped, or nothing if it completed. Writes one line per operation to `placements`: `f ID`, or `a ID OFFSET BYTES`
// (offset in the slab, bytes as requested). On granules, `a ID BYTES G0 G1 ...` lists the 2 MiB pages in the order of
// the block's bytes; `G:OFFSET` is the part of page G from OFFSET to the end of the page or block. ID is the block's
// number in the trace file.
std::optional<Stop> replay(const Trace &trace, std::uint64_t arena_bytes, Backing backing = Backing::slab,
                           std::ostream *placements = nullptr, Driver *driver = nullptr);

// The smallest arena in which the trace completes, to within 0.05 %; the trace has been replayed in it. Throws
// TraceError if no arena is large enough.
std::uint64_t find_minimum(const Trace &trace, Backing backing = Backing::slab);

}  // namespace ration::pool::replay
