// What `ration run` says when the command has ended: the figures that each of its processes left. Layer: cli.
#pragma once

#include <string>
#include <vector>

#include "events/summary_page.h"

namespace ration::cli {

// Every page in `folder` and in the folders of the runs inside this run.
std::vector<events::Summary> read_summaries(const std::string &folder);

// At most eight lines; the largest peaks first. "no CUDA calls" where `summaries` is empty.
std::vector<std::string> summary_lines(std::vector<events::Summary> summaries);

}  // namespace ration::cli
