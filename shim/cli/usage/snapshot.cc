#include "cli/usage/snapshot.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <iostream>

#include "cli/log.h"
#include "cli/text_table.h"
#include "cli/usage/usage_tables.h"
#include "config/settings_context.h"
#include "config/values/quotes.h"

namespace ration::cli {

std::string state_folder() {
  std::vector<config::Problem> problems;
  const config::Settings settings = config::read_settings(config::own_context(), problems);
  for (const config::Problem &problem : problems) {
    if (problem.key == "state_dir") {  // `ration env` reports the others; they concern a program that is started
      log_line(problem.line);
      if (problem.fatal_for_cli) {
        return {};
      }
    }
  }
  return settings.state_folder();
}

Usage take_snapshot(const std::string &state_folder) {
  std::string problem;
  const std::vector<ledger::Group> groups = ledger::read_groups(state_folder, problem);
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  Usage usage = usage_of(groups, problem,
                         static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count()));
  HostProcesses here;
  for (ProcessRow &row : usage.processes) {
    row.here = here.find(row);
  }
  return usage;
}

std::uint64_t own_pid_namespace() {
  struct stat status {};
  return stat("/proc/self/ns/pid", &status) == 0 ? status.st_ino : 0;
}

bool print_tables(const Usage &usage, const std::string &state_folder) {
  for (const std::string &line : both_tables(usage, output_width())) {
    std::cout << line << '\n';
  }
  if (usage.is_empty() && usage.problems.empty()) {
    log_line("no process runs under ration here; looked in " + config::shown(state_folder));
  }
  return flush_stdout();
}

void log_problems(const Usage &usage, std::vector<std::string> &logged) {
  for (const std::string &problem : usage.problems) {
    if (std::find(logged.begin(), logged.end(), problem) == logged.end()) {
      log_line(config::printable(problem));
      logged.push_back(problem);
    }
  }
}

}  // namespace ration::cli
