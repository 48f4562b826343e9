// Reads a whole log, into a history or record by record, with progress on a terminal. Layer: logs. Threads: one.
#pragma once

#include <functional>
#include <string>

#include "logs/history/history.h"
#include "logs/reader/log_reader.h"

namespace ration::logs {

// How far a log could be read. A line in the name of `verb` has said what is not `end`.
enum class ReadTo { end, cut, nowhere };
ReadTo say_how_far(const std::string &verb, const std::string &log, const LogReader &reader);

// Calls `take` with each record, of a log that was cut off those before the cut. `nowhere`: it is no log, or lacks
// records in the middle.
ReadTo read_records(const std::string &verb, const std::string &log, const std::function<void(const Record &)> &take);

// The same into a history. False: `nowhere`.
bool read_history(const std::string &verb, const std::string &log, History &history);

}  // namespace ration::logs
