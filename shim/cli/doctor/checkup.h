// The checks of `ration doctor`, one file for each subject, and the facts that they examine. A check changes nothing on
// the machine. A check that cannot be carried out reports Check::unchecked. Layer: cli. Threads: one.
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
  RunRequest run;                       // the options and the command, if one was given
  std::optional<CommandWalk> walk;      // how that command leads to its program
  std::optional<ProcessFacts> process;  // the process to examine, if one was given
  EnvironmentBlock environment;         // of the process if readable, else of the command, else ours
  // The environment in which probe programs are started. An examined process's environment names libraries to load, so
  // it is used only if is_our_own() holds.
  EnvironmentBlock probed;
  Library library;  // at its expected paths
  // The entries as the command's loader finds them; without a command, as ours does. Unused for a process.
  std::vector<Preload> preloads;
  config::Settings settings;
  std::vector<config::Problem> problems;         // mistakes in `settings`
  std::vector<config::Problem> device_problems;  // limits for devices that do not exist
  MachineFacts machine;
};

// Throws Refusal if /proc is not mounted. `pid`: the process to examine. `folder`: for the simulated machine of --sim.
Checkup begin_checkup(RunRequest run, std::optional<int> pid, const std::string &folder);
// True if the process belongs to our user and sees the same files as we do.
bool is_our_own(const ProcessFacts &process);

Findings check_installation(const Checkup &checkup);
Findings check_driver(const Checkup &checkup);
Findings check_devices(const Checkup &checkup);
Findings check_enforcement(const Checkup &checkup);
Findings check_preloads(const Checkup &checkup);
Findings check_state_folder(const Checkup &checkup);
Findings check_container(const Checkup &checkup);
Findings check_settings(const Checkup &checkup);
// `earlier`: the other findings; if they explain why no program can be limited, no program is started.
Findings check_hooks(const Checkup &checkup, const Findings &earlier);
// REQUIRES: the checkup has a command. The command is not started.
Findings check_command(const Checkup &checkup);
// REQUIRES: the checkup has a process.
Findings check_process(const Checkup &checkup);

// True if the file's strings include the names of the driver's allocation functions, as an interposing library's do.
bool names_driver_functions(const std::string &path);
// The copy of the library that a program would load here; nullopt if it is the installed copy, or none would be loaded.
std::optional<Library> other_library(const Checkup &checkup);

}  // namespace ration::cli::doctor
