// `ration ps`: prints how much device memory each process holds, once or again and again. Layer: cli.
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <iostream>
#include <map>

#include "cli/exit_status.h"
#include "cli/log.h"
#include "cli/text_table.h"
#include "cli/usage/prometheus_text.h"
#include "cli/usage/snapshot.h"
#include "cli/usage/usage_json.h"
#include "cli/usage/whole_file.h"
#include "cli/verbs.h"
#include "config/values/quotes.h"

namespace ration::cli {

namespace {

constexpr double kLeastWatchSeconds = 0.1;
constexpr double kMostWatchSeconds = 86400;

// True: as long as the output is wanted. The reader of a pipe ends it, which poll(2) reports as an error.
bool goes_on_after(double seconds) {
  pollfd out{STDOUT_FILENO, 0, 0};
  return poll(&out, 1, static_cast<int>(seconds * 1000)) == 0;
}

// Until a signal ends it.
int watch_tables(const StateFolders &folders, double seconds) {
  std::signal(SIGPIPE, SIG_IGN);
  std::vector<std::string> logged;
  for (bool is_first = true;; is_first = false) {
    std::cout << (is_first ? "" : "\n");
    const Usage usage = take_snapshot(folders);
    log_problems(usage, logged);
    errno = 0;
    if (!print_tables(usage, folders)) {
      return errno == EPIPE ? 0 : kOurError;
    }
    if (!goes_on_after(seconds)) {
      return 0;
    }
  }
}

// What `ration set` can change: a line for each group and each process, its name and what that is.
void print_targets(const Usage &usage) {
  std::map<std::string, std::string> targets;
  for (const GroupRow &group : usage.groups) {
    if (group.kind != ledger::GroupKind::kNone && group.kind != ledger::GroupKind::kQueue) {
      targets[group.label] = "group of " + counted(group.processes, "process", "processes");
    }
  }
  for (const ProcessRow &process : usage.processes) {
    targets.emplace(std::to_string(process.shown_pid()), process.shown_command());
  }
  for (const auto &[name, what] : targets) {
    std::cout << name << '\t' << readable(what) << '\n';
  }
}

}  // namespace

int run_verb(const PsRequest &request) {
  if (request.watch_seconds &&
      !(*request.watch_seconds >= kLeastWatchSeconds && *request.watch_seconds <= kMostWatchSeconds)) {
    log_line("ps: --watch takes seconds from 0.1 to 86400");
    return kUsageError;
  }
  const StateFolders folders{state_folder(), request.all};
  if (folders.own.empty()) {
    return kOurError;
  }
  if (request.watch_seconds) {
    return watch_tables(folders, *request.watch_seconds);
  }
  const Usage usage = take_snapshot(folders);
  if (request.targets) {
    print_targets(usage);
    return flush_stdout() ? 0 : kOurError;
  }
  bool written = true;
  if (request.textfile) {
    const std::string problem = replace_file(*request.textfile, prometheus_text(usage, own_pid_namespace()));
    if (written = problem.empty(); !written) {
      log_line("ps: cannot write " + config::quoted(*request.textfile) + ": " + problem);
    }
  } else if (request.prometheus) {
    std::cout << prometheus_text(usage, own_pid_namespace());
    written = flush_stdout();
  } else if (request.json) {
    std::cout << usage_json(usage, 2) << '\n';
    written = flush_stdout();
  } else {
    written = print_tables(usage, folders);
  }
  std::vector<std::string> logged;
  log_problems(usage, logged);
  return !written ? kOurError : usage.problems.empty() ? 0 : kProblemSeen;
}

}  // namespace ration::cli
