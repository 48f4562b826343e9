// `ration ps`: prints how much device memory each process holds, once. Layer: cli.
#include <iostream>

#include "cli/exit_status.h"
#include "cli/log.h"
#include "cli/usage/prometheus_text.h"
#include "cli/usage/snapshot.h"
#include "cli/usage/usage_json.h"
#include "cli/usage/whole_file.h"
#include "cli/verbs.h"
#include "config/values/quotes.h"

namespace ration::cli {

int run_verb(const PsRequest &request) {
  const std::string folder = state_folder();
  if (folder.empty()) {
    return kOurError;
  }
  const Usage usage = take_snapshot(folder);
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
    written = print_tables(usage, folder);
  }
  std::vector<std::string> logged;
  log_problems(usage, logged);
  return !written ? kOurError : usage.problems.empty() ? 0 : kProblemSeen;
}

}  // namespace ration::cli
