// The checks and preparations of `ration run` before it starts the command. Layer: cli.
#pragma once

#include <string>

#include "cli/base/verbs.h"
#include "cli/launch/environment_block.h"
#include "cli/launch/library.h"
#include "cli/launch/program.h"
#include "config/settings.h"

namespace ration::cli {

// Throw Refusal if --wait has no valid duration, or --group-tree has no valid limit.
void refuse_wrong_wait(const RunRequest &request);
void refuse_wrong_tree(const RunRequest &request);

// Puts the options into the environment and marks them as options. Relative paths are relative to the current folder.
void set_flags(const RunRequest &request, EnvironmentBlock &environment);
// The settings that the command will have, from all sources.
config::Settings settings_of(const RunRequest &request, const EnvironmentBlock &environment,
                             std::vector<config::Problem> &problems);

// The wrong setting as the user wrote it: as an option if an option set the variable.
std::string as_written(const RunRequest &request, const config::Problem &problem);
// The exit status for these problems; usage_status() if all of them are in options.
int status_of(const RunRequest &request, const std::vector<config::Problem> &problems);
int usage_status(const RunRequest &request);

// Calls set_flags() and settings_of(). Logs a line for each mistake; throws Refusal if there is one.
config::Settings apply_flags(const RunRequest &request, EnvironmentBlock &environment);

// Prints one line if settings that affect the log are set but no log is written. A nested run prints it only for its
// own options, because the outer run has reported the others.
void say_what_needs_a_log(const RunRequest &request, const config::Settings &settings);

// The program that the command will run. Throws Refusal if that program cannot be started, or if a limit is set that
// cannot be enforced on it.
Program inspect(const RunRequest &request, const Library &library, const EnvironmentBlock &environment,
                const config::Settings &settings);

void preload(const Library &library, const Program &program, EnvironmentBlock &environment);

// Prepares the simulated driver of --sim. `folder` holds the simulated machine, unless SIMCUDA_MACHINE names another.
void simulate(const RunRequest &request, const Library &library, const std::string &folder,
              EnvironmentBlock &environment);

// For a verb that runs the command repeatedly. If `ration run` would refuse the command line every time, or if the
// command cannot be started, logs why and throws Refusal. Returns the settings that every run will have.
config::Settings refuse_wrong_line(const RunRequest &request, EnvironmentBlock environment);

}  // namespace ration::cli
