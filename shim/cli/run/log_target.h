// Checks, before anything starts, whether a log can be written and what it would overwrite. Layer: cli. Leaves no file.
#pragma once

#include <string>

#include "cli/base/verbs.h"
#include "cli/launch/program.h"
#include "config/settings.h"

namespace ration::cli {

// Throws Refusal if --log names a file that cannot be written or is not empty. If another setting names such
// a file, only prints a line, because logging fails open. Placeholders are replaced as in the command's first process.
// A name that only another process can fill in is not checked. If there will be no log, says so and returns false.
// Design: design/first-use.md#names-of-logs
[[nodiscard]] bool check_log_target(const RunRequest &request, const config::Settings &settings,
                                    const Program &program);

// Throws Refusal if the file of --summary could not be written at the end.
void refuse_summary_target(const RunRequest &request);

// Why a process of this program could not write a log with this name pattern. Empty if no reason was found.
std::string obstacle_to_log(const std::string &pattern, const std::string &program);

}  // namespace ration::cli
