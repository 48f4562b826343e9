#include "cli/doctor/checkup.h"

#include <unistd.h>

#include "config/settings_context.h"

namespace ration::cli::doctor {

namespace {

// The settings as the process read them at its first CUDA call, except that files may have changed since.
config::Settings settings_of_process(const ProcessFacts &process, std::vector<config::Problem> &problems) {
  config::SettingsContext from = config::own_context();
  const EnvironmentBlock environment(process.environment);
  const std::vector<const char *> entries = environment.pointers();
  from.environment = entries.data();
  from.at_start.clear();
  from.program = {process.executable, config::joined_words(process.words)};
  return config::read_settings(from, problems);
}

}  // namespace

namespace {

// The program whose loader is asked about preloads: the last of the command line if it can be examined, else this one.
Program preloading_program(const std::optional<CommandWalk> &walk) {
  if (walk && !walk->loss && !walk->is_elsewhere) {
    Program program = inspect_program(walk->stages.back().words.front(), walk->stages.back().search_path);
    if (program.exit_status == 0 && program.obstacle == Obstacle::kNone &&
        is_dynamic_linker(read_elf(program.elf.interpreter))) {
      return program;
    }
  }
  return inspect_program("/proc/self/exe", {});
}

}  // namespace

bool is_our_own(const ProcessFacts &process) {
  return process.is_readable && process.user == geteuid() && process.reachable("/") == "/";
}

Checkup begin_checkup(RunRequest run, std::optional<int> pid, const std::string &folder) {
  EnvironmentBlock own(config::process_environment());
  set_flags(run, own);
  if (run.simulate) {
    simulate(run, expected_library(), folder, own);
  }
  Checkup checkup{std::move(run), {}, {}, own, own, expected_library(), {}, {}, {}, {}, {}};
  if (!checkup.run.command.empty()) {
    checkup.walk = walk_command(checkup.run.command, own, checkup.library);
    checkup.environment = checkup.walk->environment;
    checkup.probed = checkup.walk->probed;
    checkup.run.command = checkup.walk->stages.back().words;  // settings in files may have rules for this command
  }
  if (pid) {
    checkup.process = read_process(*pid);
  } else {
    checkup.preloads = preloads_of(preloading_program(checkup.walk), checkup.environment);
  }
  if (checkup.process && checkup.process->is_readable) {
    checkup.environment = EnvironmentBlock(checkup.process->environment);
    checkup.probed = is_our_own(*checkup.process) ? checkup.environment : own;
    checkup.settings = settings_of_process(*checkup.process, checkup.problems);
  } else {
    checkup.settings = settings_of(checkup.run, checkup.environment, checkup.problems);
  }
  checkup.machine = ask_machine(checkup.probed);
  if (!checkup.machine.driver.devices.empty()) {
    checkup.settings.resolve_devices(checkup.machine.driver.devices, checkup.device_problems);
  }
  return checkup;
}

}  // namespace ration::cli::doctor
