// Reads a whole log, into a history or record by record, with progress on a terminal. Layer: logs. Threads: one.
#pragma once

#include <functional>
#include <string>

#include "logs/history/history.h"
#include "logs/reader/record.h"

namespace ration::logs {

// How far a log could be read. A line in the name of `verb` has said what is not `end`; `empty`: it has no line;
// `nowhere`: it is no log, or lacks records in the middle.
enum class ReadTo { end, cut, empty, nowhere };

constexpr bool has_records(ReadTo read) {
  return read == ReadTo::end || read == ReadTo::cut;
}

// Calls `take` with each record, of a log that was cut off those before the cut.
ReadTo each_record(const std::string &verb, const std::string &log, const std::function<void(const Record &)> &take);

// The same; a line says where the log has no end.
ReadTo read_records(const std::string &verb, const std::string &log, const std::function<void(const Record &)> &take);

// The same into a history, whose readers say themselves that there is no end.
ReadTo read_history(const std::string &verb, const std::string &log, History &history);

}  // namespace ration::logs
