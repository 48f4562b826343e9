// Checks, before anything starts, whether a log can be written and what it would overwrite. Layer: cli. Leaves no file.
#pragma once

#include <string>

#include "cli/base/verbs.h"
#include "cli/launch/program.h"
#include "config/settings.h"

namespace ration::cli {

// Throws Refusal if --log names a file that cannot be written or is not empty. If another source names a log that
// cannot be written or would be lost, only logs one line, because the log fails open. Placeholders are replaced as in
// the command's first process; those that only another process can fill in are not checked. False if there will be no
// log, which then has been reported.
// Design: design/first-use.md#names-of-logs
[[nodiscard]] bool check_log_target(const RunRequest &request, const config::Settings &settings,
                                    const Program &program);

// Throws Refusal if the file of --summary could not be written at the end.
void refuse_summary_target(const RunRequest &request);

// Why a process of the program with this name could not write a log with this name pattern; empty if no reason is seen.
std::string obstacle_to_log(const std::string &pattern, const std::string &program);

}  // namespace ration::cli
