// Suggests the command to type after a run in which requests were refused. Layer: cli. Threads: pure functions.
#pragma once

#include <string>
#include <vector>

#include "cli/base/verbs.h"
#include "config/settings.h"
#include "events/summary_page.h"

namespace ration::cli {

// The command line that runs the command of a request once more, with these options before those of the request.
std::string again(const RunRequest &request, const std::string &options);

// Empty if all refusals were deliberate faults. Each suggested command can be typed as it is, in the current folder.
// `logs`: the run's files, named relative to that folder.
std::string next_step(const RunRequest &request, const config::Settings &settings,
                      const std::vector<events::Summary> &summaries, const std::vector<std::string> &logs);

}  // namespace ration::cli
