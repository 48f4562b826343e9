// Events as JSON Lines (log schema ration.events/1): the text of a record, except `ts` and `seq`, which only the writer
// knows.
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

// A type of its own, so that files that include the journal need not include fmt.
struct Line {
  fmt::basic_memory_buffer<char, 768> text;
};

// An open object: `{"t":"alloc",…` without its closing brace; close_line adds ts and seq.
void format(Line &line, const Alloc &event, int thread);
void format(Line &line, const Free &event, int thread);
void format(Line &line, const Oom &event, int thread);
void format(Line &line, const SlabAlloc &event, int thread);
void format(Line &line, const SlabFree &event, int thread);
void format(Line &line, const Wait &event, int thread);
void format(Line &line, const Trim &event, int thread);
void format(Line &line, const Sample &event, int thread);
// To an open `alloc` or `oom`.
void format_stack(Line &line, std::uint32_t number);
void format_dropped(Line &line, std::uint64_t count);
// Of a line that is such a record; 0: it is another.
std::uint64_t count_in_dropped(std::string_view line);
// `asked`: what the program asked the driver for; may be null.
void format_end(Line &line, const SummaryPage &tally, std::uint64_t dropped, const RationCoverage *asked);
void close_line(Line &line, std::uint64_t ts_ns, std::uint64_t seq);

// The whole first line, with its newline. Replaces bytes that are not UTF-8.
std::string meta_line(const Meta &meta, const Process &process);

}  // namespace ration::events
