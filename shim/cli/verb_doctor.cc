// `ration doctor`: prints what Ration covers, or explains what a program asked for beyond that. Layer: cli.
#include <iostream>

#include "cli/coverage.h"
#include "cli/exit_status.h"
#include "cli/log.h"
#include "cli/unknown_functions.h"
#include "cli/verbs.h"

namespace ration::cli {

namespace {

int print(const std::vector<std::string> &lines) {
  for (const std::string &line : lines) {
    std::cout << line << '\n';
  }
  return flush_stdout() ? 0 : kOurError;
}

int explain(const std::string &log, bool json) {
  LogReader reader(log);
  const auto read = read_log_end(reader);
  if (const auto *problem = std::get_if<LogProblem>(&read)) {
    log_line((log.empty() ? "''" : log) + ": " + problem->line);
    return problem->status;
  }
  const auto &end = std::get<LogEnd>(read);
  return print(json ? std::vector{unknown_functions_json(log, end)} : unknown_functions_text(log, end));
}

}  // namespace

int run_verb(const DoctorRequest &request) {
  if (request.coverage == request.log.has_value()) {
    log_line(request.coverage ? "doctor needs either --coverage or a log, not both"
                              : "doctor needs either --coverage or a log");
    return kUsageError;
  }
  if (request.log) {
    return explain(*request.log, request.json);
  }
  return print(request.json ? std::vector{coverage_json(coverage_rows())} : coverage_text(coverage_rows()));
}

}  // namespace ration::cli
