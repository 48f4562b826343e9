// `ration doctor`: explains why a limit does not hold, here or for a command or process; or what Ration covers.
// Layer: cli.
#include <algorithm>
#include <iostream>

#include "cli/base/exit_status.h"
#include "cli/base/log.h"
#include "cli/base/text_table.h"
#include "cli/base/verbs.h"
#include "cli/doctor/checkup.h"
#include "cli/doctor/coverage.h"
#include "cli/run/simulated_machine.h"
#include "cli/run/temporary_folder.h"

namespace ration::cli {

namespace {

using doctor::Findings;

constexpr std::size_t kNarrowest = 40;

bool print(const std::vector<std::string> &lines) {
  for (const std::string &line : lines) {
    std::cout << line << '\n';
  }
  return flush_stdout();
}

void append(Findings &all, Findings more) {
  all.insert(all.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

Findings examine(const DoctorRequest &request) {
  const TemporaryFolder machine;  // of --sim
  const doctor::Checkup checkup = doctor::begin_checkup(request.run, request.pid, machine.path());
  Findings found;
  if (request.pid) {
    append(found, doctor::check_process(checkup));
  }
  if (!request.run.command.empty()) {
    append(found, doctor::check_command(checkup));
  }
  append(found, doctor::check_installation(checkup));
  if (!checkup.process || checkup.process->is_readable) {
    append(found, doctor::check_settings(checkup));
  }
  // The state of this machine says nothing about a process that sees other files or has other rights.
  if (!checkup.process || doctor::is_our_own(*checkup.process)) {
    append(found, doctor::check_driver(checkup));
    append(found, doctor::check_devices(checkup));
    append(found, doctor::check_enforcement(checkup));
    if (!checkup.process) {  // for a process, what it has loaded is checked instead
      append(found, doctor::check_preloads(checkup));
    }
    append(found, doctor::check_hooks(checkup, found));
    append(found, doctor::check_state_folder(checkup));
    append(found, doctor::check_container(checkup));
  }
  doctor::sort_by_severity(found);
  return found;
}

int report(const Findings &found, bool json) {
  const bool printed =
      print(json ? std::vector{doctor::findings_json(found)} : doctor::findings_text(found, output_width()));
  return !printed ? kOurError : doctor::count_of(found, doctor::Severity::kTrouble) == 0 ? 0 : kTroubleFound;
}

}  // namespace

int run_verb(const DoctorRequest &request) try {
  const int kinds = (request.coverage ? 1 : 0) + (request.pid ? 1 : 0) + (request.run.command.empty() ? 0 : 1);
  if (kinds > 1) {
    log_line("doctor: --coverage, --pid, and a command after -- cannot be combined");
    return kUsageError;
  }
  if (request.pid && *request.pid < 1) {
    log_line("doctor: --pid takes the number of a process, 1 or more");
    return kUsageError;
  }
  if (request.coverage) {
    const auto rows = coverage_rows();
    return print(request.json ? std::vector{coverage_json(rows)}
                              : coverage_text(rows, std::max(kNarrowest, output_width())))
               ? 0
               : kOurError;
  }
  if (const std::string wrong = error_in_simulation(request.run.simulate); !wrong.empty()) {
    return usage_error("doctor: " + wrong, kUsageError);
  }
  return report(examine(request), request.json);
} catch (const Refusal &refusal) {  // there is no /proc
  log_error("doctor: " + refusal.line);
  return refusal.exit_status;
}

}  // namespace ration::cli
