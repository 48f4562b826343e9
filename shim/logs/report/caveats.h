// What holds for every figure of a log that has no end, or lacks records: each view of a log says it. Layer: logs.
// Threads: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "logs/history/history.h"

namespace ration::logs {

// "the log was cut off, as by a full disk"; empty: it has its end.
std::string caveat_of_end(bool has_ended, bool was_cut_off);
// That records are missing, and what follows from it; empty: none is.
std::string caveat_of_losses(const History &history);
// Why callers have no names: no stacks, or files that are not those of the run. After the names were asked for.
std::vector<std::string> caveats_of_names(const History &history);

// Why its peaks are unknown; empty: they are known.
std::string caveat_of_peak(const History &history);
// `shown`, "at least" so much, or "unknown": of a peak, as far as the log knows it. Where a log has no end, that it has
// no record of memory says nothing.
std::string peak_words(bool is_known, const std::string &shown, std::uint64_t peak);

// Of a log in which nothing was; `is_whole`: to its end.
std::string nothing_requested(bool is_whole);
// The end of a sentence about what a log does not have.
std::string as_far_as_it_goes(bool is_whole);

}  // namespace ration::logs
