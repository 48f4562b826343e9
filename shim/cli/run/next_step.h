// What to type after a run whose requests were refused. Layer: cli. Threads: pure functions.
#pragma once

#include <string>
#include <vector>

#include "cli/base/verbs.h"
#include "events/summary_page.h"

namespace ration::cli {

// Empty: nothing was refused, but on purpose. `logs`: files of the run, as they are named from here.
std::string next_step(const RunRequest &request, const std::vector<events::Summary> &summaries,
                      const std::vector<std::string> &logs);

}  // namespace ration::cli
