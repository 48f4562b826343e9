// The summary that `ration run` prints, computed from the figures that the command's processes left behind. Layer: cli.
#pragma once

#include <string>
#include <vector>

#include "events/summary_page.h"

namespace ration::cli {

// Reads all summaries in `folder` and in its subfolders for nested runs.
std::vector<events::Summary> read_summaries(const std::string &folder);

// At most nine lines, the largest peaks first; none if there was no process. `is_logged`: the run has a log, to which
// the summary can refer for details.
std::vector<std::string> summary_lines(const std::vector<events::Summary> &summaries, bool is_logged = false);

// One JSON document for programs, with every process and each device that the process used. Sizes are in bytes.
std::string summary_json(const std::vector<events::Summary> &summaries);

// The current names of the logs, relative to the current folder. log_names() returns a line with them; empty: none.
std::vector<std::string> log_files(const std::vector<events::Summary> &summaries);
std::string log_names(const std::vector<std::string> &files);

}  // namespace ration::cli
