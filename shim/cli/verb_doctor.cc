// `ration doctor`: what Ration can say about itself. Layer: cli.
#include <iostream>

#include "cli/coverage.h"
#include "cli/exit_status.h"
#include "cli/talk.h"
#include "cli/verbs.h"

namespace ration::cli {

namespace {

constexpr const char *kFooter =
    "--coverage prints a line for each export of the driver that has to do with memory: the CUDA version that it came "
    "with,\n"
    "what our catalogue of the driver asks for (POOL, COUNT, VIRT, XLATE, WATCH, WRAP), what Ration does, which test "
    "shows it.\n"
    "hooked: met by Ration. passed on: the driver's alone, because nothing escapes the limit by it. GAP: something "
    "does,\n"
    "or is answered as it should not be.\n\n"
    "Examples:\n"
    "  ration doctor --coverage | grep GAP\n"
    "  ration doctor --coverage --json | jq '.rows[] | select(.standing == \"gap\") | .export'\n\n"
    "Exit status: 0; 125 a bad option, or nothing could be written.";

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

void describe_doctor(CLI::App &verb, DoctorRequest &request) {
  verb.add_flag("--coverage", request.coverage, "what Ration does about each function of the driver");
  verb.add_flag("--json", request.json, "one JSON object");
  verb.footer(kFooter);
}

int doctor(const DoctorRequest &request) {
  if (!request.coverage) {
    say("doctor needs --coverage");
    return kOurError;
  }
  if (!print_coverage(request.json)) {
    say("doctor: cannot write");
    return kOurError;
  }
  return 0;
}

}  // namespace ration::cli
