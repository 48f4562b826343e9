// What holds for every figure of a log that has no end, or lacks records: each view of a log says it. Layer: logs.
// Threads: pure functions.
#pragma once

#include <string>
#include <vector>

#include "logs/history/history.h"

namespace ration::logs {

// "no end record: killed, or still running", "the log was cut off"; empty: it has its end.
std::string caveat_of_end(bool has_ended, bool was_cut_off);
// That records are missing, and what follows from it; empty: none is.
std::string caveat_of_losses(const History &history);

// Of a log in which nothing was; `is_whole`: to its end.
std::string nothing_requested(bool is_whole);
// The end of a sentence about what a log does not have.
std::string as_far_as_it_goes(bool is_whole);

}  // namespace ration::logs
