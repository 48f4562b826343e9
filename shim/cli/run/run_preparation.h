// Everything that `ration run` checks and prepares before it starts anything. Layer: cli.
#pragma once

#include <string>

#include "cli/run/environment_block.h"
#include "cli/run/program.h"
#include "cli/verbs.h"
#include "config/settings.h"

namespace ration::cli {

// Thrown where nothing may be started: our own mistake, somebody's wrong setting, a command that is none.
struct Refusal {
  int exit_status;
  std::string line;  // empty: it has been said
};

struct Library {
  std::string preload;    // libration.so
  std::string simulator;  // the folder of the simulated driver
};

// Beside this program; throws Refusal where it is not whole.
Library find_library();

// Puts the options into the environment, marked as such; what is a path means the folder that this is run in.
void set_flags(const RunRequest &request, EnvironmentBlock &environment);
// The settings that the command will have, of whatever source.
config::Settings settings_of(const RunRequest &request, const EnvironmentBlock &environment,
                             std::vector<config::Problem> &problems);

// Both. Every mistake is one line; any one is a Refusal.
config::Settings apply_flags(const RunRequest &request, EnvironmentBlock &environment);

// What the command will run. Throws Refusal where it cannot be started, or not be held to a limit that was asked for.
Program inspect(const RunRequest &request, const EnvironmentBlock &environment, const config::Settings &settings);

void preload(const Library &library, const Program &program, EnvironmentBlock &environment);

// `folder` is the machine's unless SIMCUDA_MACHINE names one already.
void simulate(const std::string &devices, const Library &library, const std::string &folder,
              EnvironmentBlock &environment);

}  // namespace ration::cli
