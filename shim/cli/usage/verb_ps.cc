// `ration ps`: prints how much device memory each process holds, once or again and again. Layer: cli.
#include <poll.h>
#include <unistd.h>

#include <algorithm>
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
#include "cli/usage/terminal_type.h"
#include "cli/usage/usage_json.h"
#include "config/values/quotes.h"
#include "logs/output/whole_file.h"

namespace ration::cli {

namespace {

constexpr double kLeastWatchSeconds = 0.1;
constexpr double kMostWatchSeconds = 86400;

// True: as long as the output is wanted. The reader of a pipe ends it, which poll(2) reports as an error.
bool goes_on_after(double seconds) {
  pollfd out{STDOUT_FILENO, 0, 0};
  return poll(&out, 1, static_cast<int>(seconds * 1000)) == 0;
}

// Of this place, "2026-01-31 12:00:00".
std::string time_of(const Usage &usage) {
  const auto seconds = static_cast<std::time_t>(usage.now_unix_ns / 1'000'000'000);
  std::tm parts{};
  char text[32] = "";
  localtime_r(&seconds, &parts);
  std::strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &parts);
  return text;
}

// Redraws the terminal: the first lines, so that time and titles stay on it.
bool redraw(const Usage &usage, const StateFolders &folders) {
  std::vector<std::string> lines = lines_for_output(usage);
  if (lines.empty() && usage.problems.empty()) {
    lines = wrapped(sentence_of_none(usage, folders), output_width());
  }
  for (const std::string &problem : usage.problems) {
    lines.insert(lines.begin(), truncate("! " + config::printable(problem), output_width()));
  }
  lines.insert(lines.begin(), truncate(time_of(usage), output_width()));
  const std::size_t height = std::max<std::size_t>(output_height(), 3) - 1;  // the cursor's line stays free
  if (lines.size() > height) {
    const std::size_t omitted = lines.size() - height + 1;
    lines.resize(height - 1);
    lines.push_back(truncate("and " + counted(omitted, "more line", "more lines"), output_width()));
  }
  std::cout << "\x1b[H\x1b[2J";
  for (const std::string &line : lines) {
    std::cout << line << '\n';
  }
  return flush_stdout();
}

// Until a signal ends it.
int watch_tables(const StateFolders &folders, double seconds) {
  std::signal(SIGPIPE, SIG_IGN);
  const bool redraws = isatty(STDOUT_FILENO) == 1 && terminal_has_cursor();
  std::vector<std::string> logged;
  for (bool is_first = true;; is_first = false) {
    const Usage usage = take_snapshot(folders);
    if (!redraws) {
      std::cout << (is_first ? "" : "\n") << time_of(usage) << '\n';
    }
    errno = 0;
    if (!(redraws ? redraw(usage, folders) : print_tables(usage, folders))) {
      return errno == EPIPE ? 0 : kOurError;
    }
    if (!redraws) {
      log_problems(usage, logged);
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
    std::cout << name << '\t' << config::printable(what) << '\n';
  }
}

}  // namespace

int run_verb(const PsRequest &request) {
  if (request.watch_seconds &&
      !(*request.watch_seconds >= kLeastWatchSeconds && *request.watch_seconds <= kMostWatchSeconds)) {
    log_line("ps: --watch takes seconds from 0.1 to 86400");
    return kUsageError;
  }
  if (request.textfile == "-") {
    log_line("ps: --textfile -: it replaces a file; --prometheus prints the same");
    return kUsageError;
  }
  const StateFolders folders = state_folders(request.all);
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
