// The summary of `ration run`, from the figures that each process of the command left. Layer: cli.
#pragma once

#include <string>
#include <vector>

#include "events/summary_page.h"

namespace ration::cli {

// Every page in `folder` and in the folders of nested runs below it.
std::vector<events::Summary> read_summaries(const std::string &folder);

// At most nine lines, the largest peaks first; none without a process. `is_logged`: a log was asked for, which can be
// named for more.
std::vector<std::string> summary_lines(const std::vector<events::Summary> &summaries, bool is_logged = false);

// The same for programs: one JSON document, with every process and each device that it used. Sizes in bytes.
std::string summary_json(const std::vector<events::Summary> &summaries);

// The files in which the logs are by now, from the current folder; and a line that names them, empty without any.
std::vector<std::string> log_files(const std::vector<events::Summary> &summaries);
std::string log_names(const std::vector<std::string> &files);

}  // namespace ration::cli
