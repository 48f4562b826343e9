// Everything that `ration run` checks and prepares before it starts the command. Layer: cli.
#pragma once

#include <string>

#include "cli/base/verbs.h"
#include "cli/launch/environment_block.h"
#include "cli/launch/library.h"
#include "cli/launch/program.h"
#include "config/settings.h"

namespace ration::cli {

// Puts the options into the environment and marks them as options. A relative path means the current folder.
// Throws Refusal: no duration in --wait, no limit in --group-tree.
void refuse_wrong_wait(const RunRequest &request);
void refuse_wrong_tree(const RunRequest &request);

void set_flags(const RunRequest &request, EnvironmentBlock &environment);
// The settings that the command will have, from every source.
config::Settings settings_of(const RunRequest &request, const EnvironmentBlock &environment,
                             std::vector<config::Problem> &problems);

// The setting that is wrong, as the user wrote it: an option of the line, where that has set the variable.
std::string as_written(const RunRequest &request, const config::Problem &problem);
// The exit status for these problems: that of a wrong line where options alone are wrong.
int status_of(const RunRequest &request, const std::vector<config::Problem> &problems);
int usage_status(const RunRequest &request);

// Both. Logs a line for each mistake; throws Refusal where there is one.
config::Settings apply_flags(const RunRequest &request, EnvironmentBlock &environment);

// Logs one line where settings of the log are set and no log is. Not in a run within another, which has said so, but
// for its own options.
void say_what_needs_a_log(const RunRequest &request, const config::Settings &settings);

// The program that the command will run. Throws Refusal where it cannot be started, or where a limit is set that cannot
// be enforced on it.
Program inspect(const RunRequest &request, const Library &library, const EnvironmentBlock &environment,
                const config::Settings &settings);

void preload(const Library &library, const Program &program, EnvironmentBlock &environment);

// Of a request with --sim. `folder` holds the machine unless SIMCUDA_MACHINE names one already.
void simulate(const RunRequest &request, const Library &library, const std::string &folder,
              EnvironmentBlock &environment);

// For a verb that runs the command again and again: throws Refusal, having logged why, for a line that `ration run`
// would refuse each time, and for a command that cannot be started.
void refuse_wrong_line(const RunRequest &request, EnvironmentBlock environment);

}  // namespace ration::cli
