// Writes the names of functions into the logs of a run that has ended (--embed-names). Layer: cli.
#pragma once

#include <string>
#include <vector>

#include "events/summary_page.h"

namespace ration::cli {

// Serves the processes that left `summaries` in `folder` (RATION_SUMMARY). In each of their logs that has stacks, every
// native code address gets a `names` record, before the log's `end`. If a log has several parts, the last part gets all
// records. A log is replaced as a whole. If that fails, it stays as it is, and one of the returned lines says why. If a
// signal that would end us arrives, the remaining logs get no names.
std::vector<std::string> embed_names(const std::vector<events::Summary> &summaries, const std::string &folder);

}  // namespace ration::cli
