// `ration doctor`: prints what Ration covers. Layer: cli.
#include <iostream>

#include "cli/coverage.h"
#include "cli/exit_status.h"
#include "cli/log.h"
#include "cli/verbs.h"

namespace ration::cli {

namespace {

bool print_coverage(bool json) {
  if (json) {
    std::cout << coverage_json(coverage_rows()) << '\n';
    return flush_stdout();
  }
  for (const std::string &line : coverage_text(coverage_rows())) {
    std::cout << line << '\n';
  }
  return flush_stdout();
}

}  // namespace

int run_verb(const DoctorRequest &request) {
  if (!request.coverage) {
    log_line("doctor needs --coverage");
    return kUsageError;
  }
  return print_coverage(request.json) ? 0 : kOurError;
}

}  // namespace ration::cli
