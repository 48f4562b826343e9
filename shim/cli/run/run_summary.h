// The summary that `ration run` prints, made from the figures that each process of the command left behind. Layer: cli.
#pragma once

#include <string>
#include <vector>

#include "events/summary_page.h"

namespace ration::cli {

// Reads all summaries in `folder`, and in the folders of nested runs below it.
std::vector<events::Summary> read_summaries(const std::string &folder);

// At most nine lines, the largest peaks first; none if there was no process. `is_logged`: the run has a log, which the
// summary can name for details.
std::vector<std::string> summary_lines(const std::vector<events::Summary> &summaries, bool is_logged = false);

// One JSON document for programs, with every process and each device that it used. Sizes in bytes.
std::string summary_json(const std::vector<events::Summary> &summaries);

// The current names of the logs, relative to the current folder. log_names(): a line that shows them; empty: none.
std::vector<std::string> log_files(const std::vector<events::Summary> &summaries);
std::string log_names(const std::vector<std::string> &files);

}  // namespace ration::cli
