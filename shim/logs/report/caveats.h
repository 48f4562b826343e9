// Caveats about the figures of a log that has no end or lacks records. Every view of a log prints them. Layer: logs.
// Threads: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "logs/history/history.h"

namespace ration::logs {

// Says that the log has no end, such as "the log was cut off, as by a full disk"; empty: the log has its end.
std::string caveat_of_end(bool has_ended, bool was_cut_off);
// Says that records are missing, and with what consequences; empty: none are missing.
std::string caveat_of_losses(const History &history);
// Why callers have no names: there are no stacks, or the files have changed since the run. Call this after the names
// were requested.
std::vector<std::string> caveats_of_names(const History &history);

// Why the log's peaks are unknown; empty: they are known.
std::string caveat_of_peak(const History &history);
// The text for a peak: `shown` if the peak is known. Otherwise "unknown" if `peak` is 0, because a log without an end
// may lack records, and "at least" `shown` if `peak` is more.
std::string peak_words(bool is_known, const std::string &shown, std::uint64_t peak);
// "at least " if the log is not whole, to be put before its counts; empty if it is whole.
std::string at_least(bool is_whole);

// The sentence for a log in which nothing was requested. `is_whole`: the log has its end.
std::string nothing_requested(bool is_whole);
// The end of a sentence about something that the log does not contain. `is_whole`: the log has its end.
std::string as_far_as_it_goes(bool is_whole);

}  // namespace ration::logs
