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
    return static_cast<bool>(std::cout << coverage_json(coverage_rows()) << std::endl);
  }
  for (const std::string &line : coverage_text(coverage_rows())) {
    std::cout << line << '\n';
  }
  return static_cast<bool>(std::cout.flush());
}

}  // namespace

int run_verb(const DoctorRequest &request) {
  if (!request.coverage) {
    log_line("doctor needs --coverage");
    return kOurError;
  }
  if (!print_coverage(request.json)) {
    log_line("doctor: cannot write");
    return kOurError;
  }
  return 0;
}

}  // namespace ration::cli
