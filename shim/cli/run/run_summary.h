// The summary of `ration run`, from the figures that each process of the command left. Layer: cli.
#pragma once

#include <string>
#include <vector>

#include "events/summary_page.h"

namespace ration::cli {

// Every page in `folder` and in the folders of nested runs below it.
std::vector<events::Summary> read_summaries(const std::string &folder);

// At most nine lines, the largest peaks first. "no CUDA calls" where `summaries` is empty. `is_logged`: a log was asked
// for, which can be named for more.
std::vector<std::string> summary_lines(std::vector<events::Summary> summaries, bool is_logged = false);

}  // namespace ration::cli
