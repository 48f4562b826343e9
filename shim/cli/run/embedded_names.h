// Writes the functions' names into the logs of a run that has ended (--embed-names). Layer: cli.
#pragma once

#include <string>
#include <vector>

#include "events/summary_page.h"

namespace ration::cli {

// Of the processes that left `summaries` in `folder` (RATION_SUMMARY): each log with stacks gets a `names` record for
// each place in native code, before its `end`; of a log in parts the last one has them all. A log is replaced whole, or
// stays as it is: a line says why. A signal that would end us leaves the rest without names.
std::vector<std::string> embed_names(const std::vector<events::Summary> &summaries, const std::string &folder);

}  // namespace ration::cli
