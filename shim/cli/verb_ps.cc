// `ration ps`: who holds how much device memory, once. Layer: cli.
#include <iostream>

#include "cli/exit_status.h"
#include "cli/look.h"
#include "cli/prometheus_text.h"
#include "cli/talk.h"
#include "cli/usage_json.h"
#include "cli/verbs.h"
#include "cli/whole_file.h"
#include "config/wording.h"

namespace ration::cli {

namespace {

constexpr const char *kFooter =
    "RESERVED is what the device holds for the process, and what counts; USED what the program holds of it; LIMIT the\n"
    "process's own. The second table shows the groups and what they share. Everyone whose books lie in the same "
    "folder\n"
    "(RATION_STATE_DIR) is seen, also from inside and outside of containers; no process is touched.\n\n"
    "Examples:\n"
    "  ration ps\n"
    "  ration ps --json | jq '.processes[] | {pid, reserved}'\n"
    "  ration ps --textfile /var/lib/node_exporter/ration.prom     for node_exporter's textfile collector\n\n"
    "Exit status: 0; 1 where something could not be read (the rest is shown); 125 a bad option, or nothing could be\n"
    "written.";

}  // namespace

void describe_ps(CLI::App &verb, PsRequest &request) {
  CLI::Option *json = verb.add_flag("--json", request.json, "one JSON object, sizes in bytes");
  CLI::Option *prometheus = verb.add_flag("--prometheus", request.prometheus, "as metrics, in Prometheus' text format");
  CLI::Option *file =
      verb.add_option("--textfile", request.textfile, "these metrics, put into FILE as a whole")->type_name("FILE");
  json->excludes(prometheus)->excludes(file);
  prometheus->excludes(file);
  verb.footer(kFooter);
}

int ps(const PsRequest &request) {
  const std::string folder = state_folder_here();
  if (folder.empty()) {
    return kOurError;
  }
  const Usage usage = look_into(folder);
  bool written = true;
  if (request.textfile) {
    const std::string problem = replace_file(*request.textfile, prometheus_text(usage, own_pid_namespace()));
    if (written = problem.empty(); !written) {
      say("ps: cannot write " + config::quoted(*request.textfile) + ": " + problem);
    }
  } else if (request.prometheus) {
    written = static_cast<bool>(std::cout << prometheus_text(usage, own_pid_namespace()) << std::flush);
  } else if (request.json) {
    written = static_cast<bool>(std::cout << usage_json(usage, 2) << std::endl);
  } else {
    written = print_tables(usage, folder);
  }
  std::vector<std::string> said;
  say_problems(usage, said);
  return !written ? kOurError : usage.problems.empty() ? 0 : kProblemSeen;
}

}  // namespace ration::cli
