// `ration run`: checks everything, starts the command under the library, prints a summary. Layer: cli.
#include <dlfcn.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <functional>
#include <iostream>
#include <iterator>
#include <optional>

#include "cli/base/exit_status.h"
#include "cli/base/group_label.h"
#include "cli/base/log.h"
#include "cli/base/verbs.h"
#include "cli/launch/environment_block.h"
#include "cli/run/device_figures.h"
#include "cli/run/device_limits.h"
#include "cli/run/device_neighbours.h"
#include "cli/run/embedded_names.h"
#include "cli/run/forwarded_wait.h"
#include "cli/run/log_compression.h"
#include "cli/run/log_target.h"
#include "cli/run/next_step.h"
#include "cli/run/reservation.h"
#include "cli/run/run_preparation.h"
#include "cli/run/run_summary.h"
#include "cli/run/simulation_notes.h"
#include "cli/run/temporary_folder.h"
#include "config/settings.h"
#include "config/settings_context.h"
#include "config/values/quotes.h"
#include "config/values/size.h"
#include "ledger/group_view.h"
#include "ledger/membership.h"
#include "logs/output/whole_file.h"

namespace ration::cli {

namespace {

// About the devices that were used; each sentence once.
std::vector<std::string> limits_beyond_used(const config::Settings &settings,
                                            const std::vector<events::Summary> &summaries) {
  std::vector<std::string> sentences;
  for (const events::Summary &process : summaries) {
    for (std::size_t i = 0; i < process.devices.size(); ++i) {
      const events::Summary::Device &device = process.devices[i];
      if (device.reserved_peak_bytes == 0) {
        continue;
      }
      for (std::string &each : limits_beyond(settings, {static_cast<int>(i), device.uuid, device.total})) {
        if (std::find(sentences.begin(), sentences.end(), each) == sentences.end()) {
          sentences.push_back(std::move(each));
        }
      }
    }
  }
  return sentences;
}

// True if an option sets a limit. Settings cannot tell: those of a disabled process are not read.
bool states_limit(const RunRequest &request) {
  constexpr std::string_view kLimits[] = {"limit", "group_limit", "container_limit", "group_tree", "reserve"};
  return std::any_of(request.flags.begin(), request.flags.end(), [&](const auto &flag) {
    return std::find(std::begin(kLimits), std::end(kLimits), flag.first->key) != std::end(kLimits);
  });
}

// True if the dynamic linker finds a driver, which is not initialised.
bool has_driver() {
  return dlopen("libcuda.so.1", RTLD_LAZY) != nullptr;
}

// A shell reports a crash of its own child; of ours it sees an exit status only.
void say_what_ended(const RunRequest &request, int signal) {
  constexpr int kOfUsers[] = {SIGHUP, SIGINT, SIGQUIT, SIGPIPE, SIGALRM, SIGTERM, SIGUSR1, SIGUSR2};
  const bool is_usual =
      signal == 0 || std::find(std::begin(kOfUsers), std::end(kOfUsers), signal) != std::end(kOfUsers);
  if (!is_usual && !request.quiet && request.summary != "json") {
    log_line(config::shown(request.command.front()) + " was ended by signal " + std::to_string(signal) + " (" +
             strsignal(signal) + ")");
  }
}

void print_summary(const RunRequest &request, const TemporaryFolder &pages,
                   const std::vector<events::Summary> &summaries, const Program &program,
                   const config::Settings &settings, const Started &started) {
  if (request.summary && *request.summary == "json") {
    std::cerr << summary_json(summaries) << std::endl;
    return;
  }
  if (request.summary) {
    const std::string problem = logs::replace_file(*request.summary, summary_json(summaries) + "\n");
    if (!problem.empty()) {
      log_error("run: cannot write the summary " + config::in_quotes(*request.summary) + ": " + problem);
    }
  }
  if (settings.disabled) {
    if (!request.quiet && !states_limit(request)) {  // otherwise it was reported before the start
      log_line("nothing was limited or counted: RATION_DISABLE=1");
    }
    return;
  }
  if (request.quiet) {
    return;
  }
  if (pages.path().empty()) {
    log_line("no summary: neither $TMPDIR, /tmp nor /dev/shm can be written");
    return;
  }
  if (summaries.empty() && program.obstacle != Obstacle::kNone) {
    return;  // inspect() has logged that it cannot be intercepted
  }
  const bool may_lack_driver = started.exit_status == kNotFound;  // the status of a dynamic linker, too
  if (summaries.empty() && may_lack_driver && !request.simulate && !has_driver()) {
    log_line("hint: there is no CUDA driver here (libcuda.so.1). --sim 8GiB simulates a GPU");
    return;
  }
  if (summaries.empty() && settings.limit_asked() && !started.was_alone) {
    log_line(request.simulate || has_driver()
                 ? "saw no CUDA calls. A process that lost LD_PRELOAD was not limited"
                 : "saw no CUDA calls: there is no CUDA driver here (libcuda.so.1). --sim 8GiB simulates a GPU");
    return;
  }
  for (const std::string &line : summary_lines(summaries, !settings.log.empty())) {
    log_line(line);
  }
  for (const std::string &line : limits_beyond_used(settings, summaries)) {
    log_line(line);
  }
}

// Joins and leaves each group, because processes that cannot join one are refused every allocation.
void refuse_unusable_groups(const config::Settings &settings) {
  for (const config::Settings::Group &group : settings.groups) {
    const ledger::GroupKind kind = kind_of(group.kind);
    const std::string name =
        kind == ledger::GroupKind::kContainer ? ledger::container_group_name(group.name) : group.name;
    std::string problem;
    if (ledger::Membership::join(settings.state_folder(), kind, name, ledger::this_process(), problem) == nullptr) {
      throw Refusal{kOurError, ledger::group_label(kind, name) +
                                   " cannot be joined, so every allocation would be refused: " + problem};
    }
  }
}

// A refused run must leave nothing in its group: reading the groups removes what it stated.
Reservation reserve(const RunRequest &request, const config::Settings &settings, EnvironmentBlock &environment) {
  try {
    return Reservation(request, settings, environment);
  } catch (const Refusal &) {
    std::string problem;
    (void)ledger::read_groups(settings.state_folder(), problem);
    throw;
  }
}

// Adds to each device that was full how much is held there outside Ration by now, if NVML knows.
void add_outside_holders(std::vector<events::Summary> &summaries, const config::Settings &settings,
                         const EnvironmentBlock &environment) {
  NvmlProcess nvml(environment);
  for (events::Summary &process : summaries) {
    for (events::Summary::Device &device : process.devices) {
      if (device.denied[static_cast<int>(events::Reason::device)] == 0) {
        continue;
      }
      std::string problem;
      const std::optional<DeviceFigures> figures = nvml.of(device.uuid);
      const std::uint64_t bytes = figures && figures->memory
                                      ? held_outside(*figures, ledger::read_groups(settings.state_folder(), problem))
                                      : 0;
      if (bytes != 0) {
        device.holders.push_back({0, events::kOutside, bytes, 0});
      }
    }
  }
}

void refuse_names_without_stacks(const RunRequest &request, const config::Settings &settings) {
  const std::string lacks = std::string(settings.log.empty() ? " --log FILE" : "") +
                            (settings.stacks == config::Stacks::kNone ? " --stacks native" : "");
  if (request.embed_names && !lacks.empty()) {
    throw Refusal{kOurError, "--embed-names writes the names of the functions in a log with stacks; add" + lacks};
  }
}

int start(const RunRequest &request) {
  if (request.command.empty() || request.command.front().empty()) {
    const bool has_log = std::any_of(request.flags.begin(), request.flags.end(),
                                     [](const auto &each) { return each.first->key == "log"; });
    throw Refusal{kOurError, std::string("no command; write, for example: ration run --limit 40% -- ./train") +
                                 (has_log ? "; the word after --log was taken as its file" : "")};
  }
  refuse_wrong_wait(request);
  EnvironmentBlock environment(config::process_environment());
  const config::Settings settings = apply_flags(request, environment);
  if (request.verbose && settings.origin_of("diagnostics") == nullptr) {
    environment.set("RATION_DIAGNOSTICS", "debug");
  }
  refuse_names_without_stacks(request, settings);
  const Library library = find_library();
  say_what_needs_a_log(request, settings);

  // A nested run leaves its figures in the outer run's folder, and the outer run removes them.
  TemporaryFolder folder;
  TemporaryFolder pages(settings.summary_directory.empty() ? folder.path() : settings.summary_directory);
  if (!settings.summary_directory.empty()) {
    pages.keep();
  }
  if (request.simulate) {
    simulate(request, library, folder.path(), environment);
  }
  if (!settings.disabled) {
    refuse_absent_devices(request, environment);
  } else if (states_limit(request)) {
    log_line("run: RATION_DISABLE=1: nothing is limited or counted");
  }
  if (!settings.disabled && environment.value("RATION_DISABLE") == "1" && settings.summary_directory.empty()) {
    log_line("run: RATION_DISABLE=1 has no effect: there is a file " + config::system_folder() + "/enforced");
  }
  const Program program = inspect(request, library, environment, settings);
  if (!check_log_target(request, settings, program)) {
    environment.unset("RATION_LOG");  // the library would report the same in each process
  }
  refuse_summary_target(request);
  if (!settings.disabled && program.obstacle == Obstacle::kNone) {
    refuse_unusable_groups(settings);
  }
  Reservation reservation = reserve(request, settings, environment);
  preload(library, program, environment);
  if (pages.path().empty()) {
    environment.unset("RATION_SUMMARY");
  } else {
    environment.set("RATION_SUMMARY", pages.path());
  }

  std::function<void()> heed;
  if (reservation.is_held()) {
    heed = [&reservation] { reservation.heed(); };
  }
  const Started started =
      start_and_wait(program.path, request.command, environment.pointers(), program.for_shell, heed);
  if (started.our_error != 0) {
    throw Refusal{kOurError, std::string("cannot start a process: ") + std::strerror(started.our_error)};
  }
  if (started.exec_error != 0) {
    throw Refusal{started.exec_error == ENOENT ? kNotFound : kNotExecutable,
                  request.command.front() + ": " + std::strerror(started.exec_error)};
  }
  std::vector<events::Summary> summaries = read_summaries(pages.path());
  add_outside_holders(summaries, settings, environment);
  reservation.learn(summaries);
  if (const std::string line = unsupported_runtime(request.simulate ? environment.value("SIMCUDA_NOTES") : "");
      !line.empty()) {
    log_line("run: " + line);
  }
  say_what_ended(request, started.signal);
  print_summary(request, pages, summaries, program, settings, started);
  if (request.embed_names) {
    for (const std::string &line : embed_names(summaries, pages.path())) {
      log_line(line);
    }
  }
  for (const std::string &line : compress_logs(summaries, pages.path())) {
    log_line(line);
  }
  if (!request.quiet && request.summary != "json") {
    const std::vector<std::string> logs = log_files(summaries);
    for (const std::string &line : {log_names(logs), next_step(request, settings, summaries, logs)}) {
      if (!line.empty()) {
        log_line(line);
      }
    }
  }
  if (!settings.disabled) {
    reservation = Reservation();
    // Reading the groups returns the command's memory to them, and removes a group whose last member it was.
    std::string problem;
    (void)ledger::read_groups(settings.state_folder(), problem);
  }
  return started.exit_status;
}

}  // namespace

int run_verb(const RunRequest &request) {
  try {
    return start(request);
  } catch (const Refusal &refusal) {
    if (!refusal.line.empty()) {
      log_error("run: " + refusal.line);
    }
    return refusal.exit_status;
  }
}

}  // namespace ration::cli
