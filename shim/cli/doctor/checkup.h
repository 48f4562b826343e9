// What the checks of `ration doctor` look at, and the checks, one file for each subject. A check changes nothing on the
// machine; one that cannot be made says so (Check::unchecked). Layer: cli. Threads: one.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/base/verbs.h"
#include "cli/doctor/finding.h"
#include "cli/doctor/loading_probe.h"
#include "cli/doctor/machine_facts.h"
#include "cli/launch/command_walk.h"
#include "cli/launch/environment_block.h"
#include "cli/launch/process_facts.h"
#include "cli/run/run_preparation.h"
#include "config/settings.h"

namespace ration::cli::doctor {

// Design: design/settings.md#doctor
struct Checkup {
  RunRequest run;                       // of the command, if there is one
  std::optional<CommandWalk> walk;      // of that command
  std::optional<ProcessFacts> process;  // that is asked about
  EnvironmentBlock environment;         // of that process where it may be read, of that command, else our own
  // In which programs are started. The process's only where it is ours: its variables name libraries to load.
  EnvironmentBlock probed;
  Library library;  // where it must be
  std::vector<Preload>
      preloads;  // of the command's program, else as this program's loader finds them; not of a process
  config::Settings settings;
  std::vector<config::Problem> problems;         // of `settings`
  std::vector<config::Problem> device_problems;  // of limits for devices that are not there
  MachineFacts machine;
};

// Throws Refusal where /proc is not mounted. `pid`: of the process.
Checkup begin_checkup(RunRequest run, std::optional<int> pid);
// Whether the process has our user, and sees our files.
bool is_our_own(const ProcessFacts &process);

Findings check_installation(const Checkup &checkup);
Findings check_driver(const Checkup &checkup);
Findings check_devices(const Checkup &checkup);
Findings check_enforcement(const Checkup &checkup);
Findings check_preloads(const Checkup &checkup);
Findings check_state_folder(const Checkup &checkup);
Findings check_container(const Checkup &checkup);
Findings check_settings(const Checkup &checkup);
// `earlier`: what else was found; where that says why no program can be limited, nothing is started.
Findings check_hooks(const Checkup &checkup, const Findings &earlier);
// REQUIRES: the checkup has a command. It is not started.
Findings check_command(const Checkup &checkup);
// REQUIRES: the checkup has a process.
Findings check_process(const Checkup &checkup);

// Whether the file has the driver's allocation functions among its strings, as a library that interposes them has.
bool names_driver_functions(const std::string &path);
// That a program loads here where that is not the installed one; nothing: none but that.
std::optional<Library> other_library(const Checkup &checkup);

}  // namespace ration::cli::doctor
