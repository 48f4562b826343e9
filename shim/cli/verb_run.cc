// `ration run`: check everything, start the command under the library, tell what it took. Layer: cli.
#include <algorithm>
#include <csignal>
#include <cstring>

#include "cli/environment_block.h"
#include "cli/exit_status.h"
#include "cli/forwarded_wait.h"
#include "cli/run_preparation.h"
#include "cli/run_summary.h"
#include "cli/talk.h"
#include "cli/temporary_folder.h"
#include "cli/verbs.h"
#include "config/settings.h"
#include "ledger/group_view.h"

namespace ration::cli {

namespace {

constexpr const char *kFooter =
    "What follows the command belongs to the command. Every setting that has no option here is a variable (ration env\n"
    "lists them); an option goes before its variable.\n\n"
    "Examples:\n"
    "  ration run --limit 40% -- ./train --epochs 3         at most 40% of each GPU\n"
    "  ration run --limit 0=8GiB,GPU-1f2e=50% -- ./train    a limit for each GPU\n"
    "  ration run --reserve 2GiB -- ./render                leave 2 GiB to the desktop\n"
    "  ration run --group lab --group-limit 50% -- ./train  half of each GPU for all members of the group together\n"
    "  ration run --group-tree=50% -- ./train.sh            half of each GPU for all that the script starts together\n"
    "  ration run --log %n-%p.jsonl -- python3 train.py     one JSON line for every allocation\n"
    "  ration run --sim 2x8GiB --limit 25% -- ./train       on two simulated GPUs\n\n"
    "A command that is statically linked, setuid, setgid or privileged by its file, or built for musl or another "
    "machine\n"
    "cannot be intercepted. That is said before it starts; where a limit or a group was asked for, it is not "
    "started.\n\n"
    "Exit status: the command's; 128+N when signal N ended it; 125 a bad option or setting, or a limit that could not\n"
    "hold (nothing was started); 126 not executable; 127 not found.";

class RunFormatter : public CLI::Formatter {
 public:
  std::string make_usage(const CLI::App *, std::string) const override {
    return "Usage: ration run [OPTIONS] [--] COMMAND [ARGUMENTS...]\n";
  }
};

void tell_summary(const TemporaryFolder &pages, const Program &program, const config::Settings &settings) {
  if (settings.disabled) {
    say("nothing was limited or counted: RATION_DISABLE=1");
    return;
  }
  if (pages.path().empty()) {
    say("no summary: neither $TMPDIR, /tmp nor /dev/shm can be written");
    return;
  }
  std::vector<events::Summary> summaries = read_summaries(pages.path());
  if (summaries.empty() && program.obstacle != Obstacle::kNone) {
    return;  // nothing could be seen, which has been said
  }
  for (const std::string &line : summary_lines(std::move(summaries))) {
    say(line);
  }
}

int start(const RunRequest &request) {
  if (request.command.empty() || request.command.front().empty()) {
    throw Refusal{kOurError, "no command; write for example: ration run --limit 40% -- ./train"};
  }
  EnvironmentBlock environment(config::process_environment());
  const config::Settings settings = apply_flags(request, environment);
  const Library library = find_library();

  // A run inside a run leaves its figures where the outer one finds them, and to its care.
  TemporaryFolder folder;
  TemporaryFolder pages(settings.summary_directory.empty() ? folder.path() : settings.summary_directory);
  if (!settings.summary_directory.empty()) {
    pages.keep();
  }
  if (request.simulate) {
    simulate(*request.simulate, library, folder.path(), environment);
  }
  const Program program = inspect(request, environment, settings);
  preload(library, program, environment);
  if (pages.path().empty()) {
    environment.unset("RATION_SUMMARY");
  } else {
    environment.set("RATION_SUMMARY", pages.path());
  }

  const Started started = start_and_wait(program.path, request.command, environment.pointers(), program.for_shell);
  if (started.our_error != 0) {
    throw Refusal{kOurError, std::string("cannot start a process: ") + std::strerror(started.our_error)};
  }
  if (started.exec_error != 0) {
    throw Refusal{started.exec_error == ENOENT ? kNotFound : kNotExecutable,
                  request.command.front() + ": " + std::strerror(started.exec_error)};
  }
  std::signal(SIGPIPE, SIG_IGN);  // whoever read stderr may be gone; the exit status is the command's all the same
  tell_summary(pages, program, settings);
  if (!settings.disabled) {
    // What the command held in groups goes back now, and a group that it was the last of goes too.
    std::string problem;
    (void)ledger::look(settings.state_folder(), problem);
  }
  return started.exit_status;
}

}  // namespace

void describe_flags(CLI::App &verb, Flags &flags) {
  for (const config::Option &option : config::options()) {
    if (option.flag.empty()) {
      continue;
    }
    const CLI::callback_t keep = [&flags, &option](const CLI::results_t &values) {
      flags.emplace_back(&option, values.front());
      return true;
    };
    CLI::Option *described = verb.add_option(std::string(option.flag), keep, std::string(option.help));
    if (option.key == "group_tree") {
      described->expected(0, 1)->type_name("[=LIMIT]");
      continue;
    }
    std::string values(option.values);
    std::replace(values.begin(), values.end(), ' ', '|');
    described->type_name(values);
  }
}

void describe_run(CLI::App &verb, RunRequest &request) {
  describe_flags(verb, request.flags);
  verb.add_option_function<std::string>(
          "--sim", [&request](const std::string &value) { request.simulate = value; },
          "run on simulated GPUs, without a real one: 8GiB, 2x8GiB or 8GiB,4GiB")
      ->type_name("[Nx]SIZE");
  verb.formatter(std::make_shared<RunFormatter>());
  verb.footer(kFooter);
}

int run(const RunRequest &request) {
  try {
    return start(request);
  } catch (const Refusal &refusal) {
    if (!refusal.line.empty()) {
      say("run: " + refusal.line);
    }
    return refusal.exit_status;
  }
}

}  // namespace ration::cli
