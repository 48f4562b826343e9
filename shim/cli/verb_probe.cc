// `ration probe QUESTION`: answers a question of another `ration` in a separate process, so that the driver's libraries
// and possibly damaged files stay out of the process that asks. Layer: cli.
#include <functional>
#include <map>
#include <string_view>

#include "cli/base/exit_status.h"
#include "cli/base/log.h"
#include "cli/base/verbs.h"
#include "cli/doctor/loading_probe.h"
#include "cli/doctor/machine_facts.h"
#include "cli/run/device_figures.h"
#include "cli/run/driver_probe.h"

namespace ration::cli {

int run_verb(const ProbeRequest &request) {
  const auto files = [&] { return std::vector<std::string>(request.words.begin() + 1, request.words.end()); };
  const std::map<std::string_view, std::function<int()>> answers = {
      {"devices", answer_devices},         {"figures", answer_figures},
      {"library", answer_library},         {"loading", [&] { return doctor::answer_loading(files()); }},
      {"machine", doctor::answer_machine}, {"monitor", doctor::answer_monitor},
  };
  const auto answer = request.words.empty() ? answers.end() : answers.find(request.words.front());
  return answer == answers.end() ? usage_error("probe: it answers other processes of `ration` alone", kUsageError)
                                 : answer->second();
}

}  // namespace ration::cli
