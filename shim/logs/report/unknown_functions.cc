#include "logs/report/unknown_functions.h"

#include <algorithm>
#include <iterator>

#include "base/asked_names.h"
#include "cli/base/text_table.h"
#include "config/values/quotes.h"

namespace ration::logs {

namespace {

constexpr const char *kExplanation[] = {
    "  Such a function goes to the driver as the program calls it: memory that it takes is not limited, and is in no",
    "  figure of Ration's. To ask for a function is not to call it: NVIDIA's runtime asks for all of its functions as "
    "it",
    "  starts. A newer version of Ration may know them (`ration doctor --coverage`). To see whether it matters, "
    "compare",
    "  what nvidia-smi shows for the program with RESERVED of `ration ps`, and lower the limit by what grows apart.",
};

void add_names(std::vector<std::string> &lines, const std::vector<std::string> &names) {
  std::size_t widest = 0;
  for (const std::string &name : names) {
    widest = std::max(widest, name.size());
  }
  for (const std::string &name : names) {
    const std::string shown = "    " + config::printable(name);
    lines.push_back(may_take_memory(name.c_str())
                        ? shown + std::string(widest - name.size() + 2, ' ') + "may take memory or begin a capture"
                        : shown);
  }
}

// "at least " if a process may have looked up more names than it can count.
std::string at_least(std::uint64_t names) {
  return names < RATION_NAMES_COUNTED ? "" : "at least ";
}

std::string version_text(std::uint64_t driver) {
  return driver == 0 ? "an unknown driver"
                     : "a driver of CUDA " + std::to_string(driver / 1000) + "." + std::to_string(driver % 1000 / 10);
}

}  // namespace

std::vector<std::string> unknown_functions_text(const History &history) {
  const History::Asked &asked = history.asked();
  if (asked.unknown_names == 0 && asked.unknown_versions == 0) {
    return {};
  }
  std::vector<std::string> lines = {"UNKNOWN FUNCTIONS were asked for, of " + version_text(history.driver_version()) +
                                    ", under Ration " + config::printable(history.ration_version()) + ":"};
  if (asked.unknown_names != 0) {
    lines.push_back("  " + at_least(asked.unknown_names) + cli::counted(asked.unknown_names, "function", "functions") +
                    " that this Ration does not know:");
    add_names(lines, asked.unknown);
    if (asked.unknown_names > asked.unknown.size()) {
      lines.push_back("    and " + at_least(asked.unknown_names) +
                      std::to_string(asked.unknown_names - asked.unknown.size()) + " more");
    }
  }
  if (asked.unknown_versions != 0) {
    lines.push_back("  " + cli::counted(asked.unknown_versions, "time", "times") +
                    " a function that this Ration knows, in a version that it does not (NAME@VERSION):");
    add_names(lines, asked.newer);
  }
  lines.insert(lines.end(), std::begin(kExplanation), std::end(kExplanation));
  return lines;
}

std::vector<std::string> unknown_that_take_memory(const History::Asked &asked) {
  std::vector<std::string> found;
  for (const auto &names : {asked.unknown, asked.newer}) {
    std::copy_if(names.begin(), names.end(), std::back_inserter(found),
                 [](const std::string &name) { return may_take_memory(name.c_str()); });
  }
  return found;
}

}  // namespace ration::logs
