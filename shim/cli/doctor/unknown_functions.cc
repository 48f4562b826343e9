#include "cli/doctor/unknown_functions.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/asked_names.h"
#include "cli/base/text_table.h"
#include "config/values/quotes.h"

namespace ration::cli {

namespace {

using nlohmann::json;

constexpr const char *kExplanation[] = {
    "",
    "What that means: such a function goes to the driver as the program calls it. Memory that it takes is not held to",
    "the limit and is in no figure of Ration's; memory that it frees stays charged; a capture that it begins may be",
    "disturbed. To ask for a function is not to call it: NVIDIA's runtime asks for all of its functions as it starts.",
    "",
    "What you can do:",
    "- Install a newer version of Ration: `ration doctor --coverage` lists what it knows.",
    "- See whether it matters: while the program runs, compare what nvidia-smi shows for it with RESERVED of",
    "  `ration ps`. Contexts and modules are a part of the difference (hundreds of MiB), which does not grow.",
    "- Leave room on the device for the rest of the difference: lower the limit by it.",
    "- Tell Ration's authors the names above and the driver's version.",
};

std::vector<std::string> of_memory(const std::vector<std::string> &names) {
  std::vector<std::string> found;
  std::copy_if(names.begin(), names.end(), std::back_inserter(found),
               [](const std::string &name) { return may_take_memory(name.c_str()); });
  return found;
}

void add_names(std::vector<std::string> &lines, const std::vector<std::string> &names) {
  std::size_t widest = 0;
  for (const std::string &name : names) {
    widest = std::max(widest, name.size());
  }
  for (const std::string &name : names) {
    const std::string shown = "  " + config::printable(name);
    lines.push_back(may_take_memory(name.c_str())
                        ? shown + std::string(widest - name.size() + 2, ' ') + "may take memory or begin a capture"
                        : shown);
  }
}

// A process counts no more names.
std::string at_least(std::uint64_t names) {
  return names < RATION_NAMES_COUNTED ? "" : "at least ";
}

std::string version_text(int driver) {
  return driver == 0 ? "an unknown driver"
                     : "a driver of CUDA " + std::to_string(driver / 1000) + "." + std::to_string(driver % 1000 / 10);
}

}  // namespace

std::vector<std::string> unknown_functions_text(const std::string &log, const logs::LogEnd &end) {
  std::vector<std::string> lines = {config::printable(log) + ": " + config::printable(end.program) + " (pid " +
                                    std::to_string(end.pid) + "), " + version_text(end.driver) + ", Ration " +
                                    config::printable(end.version)};
  if (end.unknown_names == 0 && end.unknown_versions == 0) {
    lines.emplace_back("It asked the driver for no function that this Ration does not know.");
    return lines;
  }
  if (end.unknown_names != 0) {
    lines.push_back("It asked the driver for " + at_least(end.unknown_names) +
                    counted(end.unknown_names, "function", "functions") + " that this Ration does not know:");
    add_names(lines, end.unknown);
    if (end.unknown_names > end.unknown.size()) {
      lines.push_back("  and " + at_least(end.unknown_names) + std::to_string(end.unknown_names - end.unknown.size()) +
                      " more");
    }
  }
  if (end.unknown_versions != 0) {
    lines.push_back("It asked " + counted(end.unknown_versions, "time", "times") +
                    " for functions that this Ration knows, in versions that it does not (NAME@VERSION):");
    add_names(lines, end.newer);
  }
  lines.insert(lines.end(), std::begin(kExplanation), std::end(kExplanation));
  return lines;
}

std::string unknown_functions_json(const std::string &log, const logs::LogEnd &end) {
  std::vector<std::string> taking = of_memory(end.unknown);
  const std::vector<std::string> newer = of_memory(end.newer);
  taking.insert(taking.end(), newer.begin(), newer.end());
  const json document = {{"schema", "ration.unknown/1"},
                         {"log", log},
                         {"program", end.program},
                         {"pid", end.pid},
                         {"driver", end.driver},
                         {"ration", end.version},
                         {"unknown_names", end.unknown_names},
                         {"unknown", end.unknown},
                         {"unknown_versions", end.unknown_versions},
                         {"newer", end.newer},
                         {"may_take_memory", taking}};
  return document.dump(2, ' ', false, json::error_handler_t::replace);
}

}  // namespace ration::cli
