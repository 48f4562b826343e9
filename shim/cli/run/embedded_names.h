// Writes function names into the logs of a run that has ended (--embed-names). Layer: cli.
#pragma once

#include <string>
#include <vector>

#include "events/summary_page.h"

namespace ration::cli {

// Handles the logs of the processes that left `summaries` in `folder` (RATION_SUMMARY). In each log with stacks, every
// native code address gets a `names` record, placed before the log's `end`. If a log has several parts, the last part
// gets all of these records. A log is replaced as a whole. If that fails, the log is unchanged and one of the returned
// lines says why. If a signal arrives that would end us, the remaining logs get no names.
std::vector<std::string> embed_names(const std::vector<events::Summary> &summaries, const std::string &folder);

}  // namespace ration::cli
