// Reads a whole log, into a history or record by record, and shows progress on a terminal. Layer: logs. Threads: one.
#pragma once

#include <functional>
#include <string>

#include "logs/history/history.h"
#include "logs/reader/record.h"

namespace ration::logs {

// How far a log could be read. For any value but `end`, a line was printed in the name of `verb`. `empty`: the log has
// no line; `nowhere`: the file is not a log, or records are missing in its middle.
enum class ReadTo { end, cut, empty, nowhere };

constexpr bool has_records(ReadTo read) {
  return read == ReadTo::end || read == ReadTo::cut;
}

// Calls `take` with each record. If the log was cut off, these are the records before the cut.
ReadTo each_record(const std::string &verb, const std::string &log, const std::function<void(const Record &)> &take);

// Like each_record(), and prints a line if the log has no end.
ReadTo read_records(const std::string &verb, const std::string &log, const std::function<void(const Record &)> &take);

// Reads the log into a history. Prints nothing if the log has no end: readers of the history report that.
ReadTo read_history(const std::string &verb, const std::string &log, History &history);

}  // namespace ration::logs
