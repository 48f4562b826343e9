// Whether the log of a run can be written, and over what: said before anything starts. Layer: cli. Leaves no file.
#pragma once

#include <string>

#include "cli/base/verbs.h"
#include "cli/launch/program.h"
#include "config/settings.h"

namespace ration::cli {

// Throws Refusal where --log names a file that cannot be written, or holds something already. Where another source
// names one that cannot be written, or one that is lost, logs one line: the log fails open. Placeholders are those of
// the command's first process; what only another process knows is not judged. False: there will be no log, and that was
// said.
// Design: design/first-use.md#names-of-logs
[[nodiscard]] bool check_log_target(const RunRequest &request, const config::Settings &settings,
                                    const Program &program);

// Throws Refusal where the file of --summary could not be written at the end.
void refuse_summary_target(const RunRequest &request);

// Why a process of this name could not write the log of this pattern; empty: nothing is seen.
std::string obstacle_to_log(const std::string &pattern, const std::string &program);

}  // namespace ration::cli
