#include "cli/run/next_step.h"

#include <algorithm>
#include <filesystem>
#include <string_view>

#include "base/file_name.h"
#include "base/visible.h"

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

// Logs of another run: the name to give to --log, and the words that name them afterwards.
struct LogNames {
  std::string asked, written;
};

// Names that no file in the current folder has or begins with, so that the run is not refused and the report is of that
// run alone. Of several processes each writes its own log, with its process ID in the name, and a program that replaces
// another in the same process adds the ID once more.
LogNames unused_names(bool several) {
  const auto is_used = [](const std::string &begin) {
    std::error_code error;
    for (std::filesystem::directory_iterator file(".", error), end; !error && file != end; file.increment(error)) {
      if (file->path().filename().string().starts_with(begin)) {
        return true;
      }
    }
    return false;
  };
  std::string name = "run";
  for (int i = 2; is_used(name + (several ? "-" : ".jsonl")); ++i) {
    name = "run" + std::to_string(i);
  }
  return several ? LogNames{name + "-%p.jsonl", name + "-*.jsonl*"} : LogNames{name + ".jsonl", name + ".jsonl"};
}

// True if a group refused the process and another member claimed most then.
bool is_held_by_others(const events::Summary &process) {
  return std::any_of(process.devices.begin(), process.devices.end(), [&process](const events::Summary::Device &device) {
    return device.denied[static_cast<int>(events::Reason::group)] != 0 && !device.holders.empty() &&
           device.holders.front().pid != process.pid;
  });
}

bool is_python(const events::Summary &process) {
  return was_refused(process) && file_name(process.program).starts_with("python");
}

// The variables from which the run has settings, as a shell takes them before a command. The shell itself may not have
// them: they may have been written there, or an outer run has set them from its options.
std::string variables(const RunRequest &request, const config::Settings &settings) {
  constexpr std::string_view kOthers[] = {"log", "stacks", "diagnostics", "group_tree"};
  std::string line;
  for (const config::Origin &origin : settings.origins) {
    if (origin.source == config::Source::kThirdParty) {
      const std::size_t value = origin.place.find('=') + 1;
      line += origin.place.substr(0, value) + typed(origin.place.substr(value)) + " ";
      continue;
    }
    const bool is_on_this_line = std::any_of(request.flags.begin(), request.flags.end(),
                                             [&](const auto &flag) { return flag.first->key == origin.key; });
    if (origin.source != config::Source::kEnvironment && (origin.source != config::Source::kFlag || is_on_this_line)) {
      continue;
    }
    const config::Option *option = config::option_of_key(origin.key);
    if (option != nullptr && option->scope != config::Scope::kInternal &&
        std::find(std::begin(kOthers), std::end(kOthers), origin.key) == std::end(kOthers) &&
        (origin.key != "state_dir" || !settings.groups.empty())) {
      line += std::string(option->variable) + "=" + typed(origin.value) + " ";
    }
  }
  return line;
}

}  // namespace

std::string again(const RunRequest &request, const std::string &options) {
  std::string line = "ration run " + options;
  if (request.simulate) {
    line += " --sim " + typed(*request.simulate);
  }
  if (request.wait) {
    line += request.wait->empty() ? " --wait" : " --wait=" + typed(*request.wait);
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

std::string next_step(const RunRequest &request, const config::Settings &settings,
                      const std::vector<events::Summary> &summaries, const std::vector<std::string> &logs) {
  if (std::none_of(summaries.begin(), summaries.end(), was_refused)) {
    return {};
  }
  const bool python = std::any_of(summaries.begin(), summaries.end(), is_python);
  const config::Stacks needed = python ? config::Stacks::kPython : config::Stacks::kNative;
  std::string line;
  for (const std::string &log : logs) {
    line += (line.empty() ? "to see what held the memory: ration report " : " ") + typed(log);
  }
  if (logs.empty() || settings.stacks < needed) {
    line += logs.empty() ? "to see what held the memory: " : "; to see which functions allocated it: ";
    const LogNames log = unused_names(summaries.size() > 1);
    line += variables(request, settings) +
            again(request, "--log " + log.asked + " --stacks " + (python ? "python" : "native")) + "; ration report " +
            log.written;
  }
  return std::any_of(summaries.begin(), summaries.end(), is_held_by_others)
             ? "others held most of the group's memory: ration ps shows who holds it now; " + line
             : line;
}

}  // namespace ration::cli
