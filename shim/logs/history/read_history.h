// Reads a whole log, into a history or record by record, and shows progress on a terminal. Layer: logs. Threads: one.
#pragma once

#include <functional>
#include <string>

#include "logs/history/history.h"
#include "logs/reader/record.h"

namespace ration::logs {

// How far a log could be read. For any value but `end`, a line that names `verb` was printed. `empty`: the log has no
// lines; `nowhere`: the file is not a log, or records are missing in the middle of it.
enum class ReadTo { end, cut, empty, nowhere };

constexpr bool has_records(ReadTo read) {
  return read == ReadTo::end || read == ReadTo::cut;
}

// Calls `take` with each record. If the log was cut off, only the records before the cut are passed.
ReadTo each_record(const std::string &verb, const std::string &log, const std::function<void(const Record &)> &take);

// Like each_record(), but also prints a line if the log has no end.
ReadTo read_records(const std::string &verb, const std::string &log, const std::function<void(const Record &)> &take);

// Reads the log into a history. If the log has no end, prints nothing, because each verb reports that from the history.
ReadTo read_history(const std::string &verb, const std::string &log, History &history);

}  // namespace ration::logs
