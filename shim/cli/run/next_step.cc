#include "cli/run/next_step.h"

#include <unistd.h>

#include <algorithm>
#include <string_view>

#include "base/file_name.h"
#include "base/visible.h"
#include "config/values/quotes.h"

namespace ration::cli {

namespace {

bool was_refused(const events::Summary &process) {
  return std::any_of(process.devices.begin(), process.devices.end(), [](const events::Summary::Device &device) {
    for (int i = 0; i < events::kReasonCount; ++i) {
      if (device.denied[i] != 0 && static_cast<events::Reason>(i) != events::Reason::fault) {
        return true;
      }
    }
    return false;
  });
}

// Quotes a word for a shell's command line, if necessary.
std::string typed(const std::string &word) {
  constexpr std::string_view kPlain = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-./:,=+@%";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) {
    return word;
  }
  if (const std::string shown = visible(word); shown != word) {  // a terminal must not get control characters
    std::string quoted = "$'";
    for (const char each : word) {
      const std::string one(1, each);
      quoted += each == '\'' || each == '\\' ? "\\" + one : each == '\n' ? "\\n" : visible(one);
    }
    return quoted + "'";
  }
  std::string quoted = "'";
  for (const char each : word) {
    quoted += each == '\'' ? std::string("'\\''") : std::string(1, each);
  }
  return quoted + "'";
}

// A name that no file here has, so that the run is not refused.
std::string unused_name() {
  std::string name = "run.jsonl";
  for (int i = 2; access(name.c_str(), F_OK) == 0; ++i) {
    name = "run-" + std::to_string(i) + ".jsonl";
  }
  return name;
}

// The command line that repeats the run with a log.
std::string again_with_log(const RunRequest &request, const std::vector<events::Summary> &summaries,
                           const std::string &log) {
  const bool is_python = std::any_of(summaries.begin(), summaries.end(), [](const events::Summary &process) {
    return was_refused(process) && file_name(process.program).starts_with("python");
  });
  std::string line = "ration run --log " + log + " --stacks " + (is_python ? "python" : "native");
  if (request.simulate) {
    line += " --sim " + typed(*request.simulate);
  }
  for (const auto &[option, value] : request.flags) {
    const bool is_own = option->key == "log" || option->key == "stacks";
    const bool has_optional_value = option->key == "group_tree";
    if (!is_own) {
      line += " " + std::string(option->flag);
      line += value.empty() ? "" : (has_optional_value ? "=" : " ") + typed(value);
    }
  }
  line += " --";
  for (const std::string &word : request.command) {
    line += " " + typed(word);
  }
  return line;
}

}  // namespace

std::string next_step(const RunRequest &request, const std::vector<events::Summary> &summaries,
                      const std::vector<std::string> &logs) {
  if (std::none_of(summaries.begin(), summaries.end(), was_refused)) {
    return {};
  }
  if (logs.empty()) {
    const std::string log = unused_name();
    return "to see what held the memory: " + again_with_log(request, summaries, log) + ", then ration report " + log;
  }
  std::string line = "to see what held the memory: ration report";
  for (const std::string &log : logs) {
    line += " " + typed(log);
  }
  return line;
}

}  // namespace ration::cli
