// `ration ps`: prints how much device memory each process holds, once or repeatedly. Layer: cli.
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <ctime>
#include <iostream>
#include <map>

#include "cli/base/exit_status.h"
#include "cli/base/log.h"
#include "cli/base/text_table.h"
#include "cli/base/verbs.h"
#include "cli/usage/prometheus_text.h"
#include "cli/usage/snapshot.h"
#include "cli/usage/usage_json.h"
#include "config/values/quotes.h"
#include "logs/output/whole_file.h"

namespace ration::cli {

namespace {

// True as long as the output is wanted. If the reader of a pipe goes away, poll(2) reports an error.
bool goes_on_after(double seconds) {
  pollfd out{STDOUT_FILENO, 0, 0};
  return poll(&out, 1, static_cast<int>(seconds * 1000)) == 0;
}

// Local time, "2026-01-31 12:00:00".
std::string time_of(const Usage &usage) {
  const auto seconds = static_cast<std::time_t>(usage.now_unix_ns / 1'000'000'000);
  std::tm parts{};
  char text[32] = "";
  localtime_r(&seconds, &parts);
  std::strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &parts);
  return text;
}

// Prints snapshots until a signal ends it or the reader goes away.
int watch(const StateFolders &folders, double seconds, bool as_json) {
  std::signal(SIGPIPE, SIG_IGN);
  std::vector<std::string> logged;
  NvmlProcess nvml;
  for (bool is_first = true;; is_first = false) {
    const Usage usage = take_snapshot(folders, nvml);
    if (as_json) {
      std::cout << usage_json(usage, -1) << '\n';
    } else {
      std::cout << (is_first ? "" : "\n") << time_of(usage) << '\n';
    }
    errno = 0;
    if (!(as_json ? flush_stdout() : print_tables(usage, folders))) {
      return errno == EPIPE ? 0 : kOurError;
    }
    log_problems(usage, logged);
    if (!goes_on_after(seconds)) {
      return 0;
    }
  }
}

// Prints what `ration set` can change: a line for each group and process, with its name and what it is.
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
    std::cout << name << '\t' << config::printable(what) << '\n';
  }
}

}  // namespace

int run_verb(const PsRequest &request) {
  if (request.textfile == "-") {
    log_line("ps: --textfile -: it replaces a file; --prometheus prints the same");
    return kUsageError;
  }
  const StateFolders folders = state_folders(request.all);
  if (folders.own.empty()) {
    return kOurError;
  }
  if (request.watch_seconds) {
    return watch(folders, *request.watch_seconds, request.json);
  }
  NvmlProcess nvml;
  const Usage usage = take_snapshot(folders, nvml);
  if (request.targets) {
    print_targets(usage);
    return flush_stdout() ? 0 : kOurError;
  }
  bool written = true;
  if (request.textfile) {
    const std::string problem = logs::replace_file(*request.textfile, prometheus_text(usage, own_pid_namespace()));
    if (written = problem.empty(); !written) {
      log_error("ps: cannot write " + config::in_quotes(*request.textfile) + ": " + problem);
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
