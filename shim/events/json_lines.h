// Formats events as JSON Lines (log schema ration.events/1). Only the writer knows `ts` and `seq`, so they are added
// last.
// Layer: events (a leaf). Threads: pure functions.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "core_abi.h"
#include "events/event.h"
#include "events/summary_page.h"

namespace ration::events {

inline constexpr char kSchema[] = "ration.events/1";

// A separate type, so that files that include the journal need not include fmt.
struct Line {
  fmt::basic_memory_buffer<char, 768> text;
};

// These append an object without its closing brace, such as `{"t":"alloc",…`. close_line adds ts, seq and the brace.
void format(Line &line, const Alloc &event, int thread);
void format(Line &line, const Free &event, int thread);
void format(Line &line, const Oom &event, int thread);
void format(Line &line, const SlabAlloc &event, int thread);
void format(Line &line, const SlabFree &event, int thread);
void format(Line &line, const Wait &event, int thread);
void format(Line &line, const Trim &event, int thread);
void format(Line &line, const Sample &event, int thread);
// Adds the number of a stack to an open `alloc` or `oom` record.
void format_stack(Line &line, std::uint32_t number);
void format_dropped(Line &line, std::uint64_t count);
// The count in a line that is a `dropped` record; 0 if the line is a different record.
std::uint64_t count_in_dropped(std::string_view line);
// `asked`: the functions that the program asked the driver for; may be null.
void format_end(Line &line, const SummaryPage &tally, std::uint64_t dropped, const RationCoverage *asked);
void close_line(Line &line, std::uint64_t ts_ns, std::uint64_t seq);

// The complete first line, with its newline. Bytes that are not valid UTF-8 are replaced.
std::string meta_line(const Meta &meta, const Process &process);

}  // namespace ration::events
