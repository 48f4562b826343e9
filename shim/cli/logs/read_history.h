// Reads a whole log, into a history or record by record, with progress on a terminal. Layer: cli. Threads: one.
#pragma once

#include <functional>
#include <string>

#include "cli/logs/history.h"

namespace ration::cli {

// Calls `take` with each record. False: it is no whole log, which a line in the name of `verb` says.
bool read_records(const std::string &verb, const std::string &log, const std::function<void(const Record &)> &take);

// The same into a history.
bool read_history(const std::string &verb, const std::string &log, History &history);

}  // namespace ration::cli
