#include "cli/doctor/clearing_commands.h"

#include <algorithm>
#include <string_view>

#include "base/file_name.h"

namespace ration::cli::doctor {

namespace {

using Words = std::vector<std::string>;

constexpr const char *kElevated = "runs its command with other rights and a new environment, without LD_PRELOAD";
constexpr const char *kFar =
    "starts its command on another machine, or under a service, with an environment of its own";
constexpr const char *kContained = "starts its command in a container, where neither LD_PRELOAD nor the library is";
constexpr const char *kEmptied = "starts its command without LD_PRELOAD as it is called here";
constexpr const char *kOtherRoot = "starts its command under another root folder, where the library is not";

constexpr const char *kPutBehind = "put ration run behind it: %s ... ration run OPTIONS -- COMMAND";
constexpr const char *kPutFar = "put ration run into the command that it is given there, and install Ration there";
constexpr const char *kPutInside =
    "give the container a share as a device (ration cdi), or mount Ration into it and run ration run inside";

struct Known {
  std::string_view name;
  // Any of these words makes it one, among its options or right behind them; nullptr: it always is.
  const char *const *only_with;
  const char *reason;
  const char *remedy;
};

constexpr const char *kEnv[] = {"-i", "-", "--ignore-environment", "-uLD_PRELOAD", "--unset=LD_PRELOAD", nullptr};
constexpr const char *kLogin[] = {"-", "-l", "--login", nullptr};
constexpr const char *kReset[] = {"--reset-env", nullptr};
constexpr const char *kClear[] = {"--clearenv", nullptr};
constexpr const char *kStarts[] = {"run", "exec", "create", "start", "compose", "container", nullptr};

constexpr Known kKnown[] = {
    {"sudo", nullptr, kElevated, kPutBehind},
    {"doas", nullptr, kElevated, kPutBehind},
    {"pkexec", nullptr, kElevated, kPutBehind},
    {"su", nullptr, kElevated, "put ration run behind it: su USER -c 'ration run OPTIONS -- COMMAND'"},
    {"runuser", kLogin, kEmptied, kPutBehind},
    {"env", kEnv, kEmptied, kPutBehind},
    {"setpriv", kReset, kEmptied, kPutBehind},
    {"bwrap", kClear, kEmptied, "leave --clearenv out, or put ration run behind it"},
    {"ssh", nullptr, kFar, kPutFar},
    {"mosh", nullptr, kFar, kPutFar},
    {"rsh", nullptr, kFar, kPutFar},
    {"pdsh", nullptr, kFar, kPutFar},
    {"systemd-run", nullptr, kFar, kPutBehind},
    {"machinectl", nullptr, kFar, kPutFar},
    {"at", nullptr, kFar, kPutFar},
    {"batch", nullptr, kFar, kPutFar},
    {"crontab", nullptr, kFar, kPutFar},
    {"sbatch", nullptr, kFar, "put ration run into the script, before the program"},
    {"qsub", nullptr, kFar, "put ration run into the script, before the program"},
    {"bsub", nullptr, kFar, "put ration run into the script, before the program"},
    {"kubectl", nullptr, kContained, kPutInside},
    {"docker", kStarts, kContained, kPutInside},
    {"podman", kStarts, kContained, kPutInside},
    {"nerdctl", kStarts, kContained, kPutInside},
    {"docker-compose", nullptr, kContained, kPutInside},
    {"ctr", nullptr, kContained, kPutInside},
    {"crictl", nullptr, kContained, kPutInside},
    {"lxc", nullptr, kContained, kPutInside},
    {"lxc-attach", nullptr, kContained, kPutInside},
    {"apptainer", nullptr, kContained, kPutInside},
    {"singularity", nullptr, kContained, kPutInside},
    {"flatpak", nullptr, kContained, kPutInside},
    {"snap", nullptr, kContained, kPutInside},
    {"chroot", nullptr, kOtherRoot, kPutInside},
    {"nsenter", nullptr, kOtherRoot, kPutInside},
};

// They start the command that they are given with the environment that they have.
constexpr std::string_view kTransparent[] = {"nice",    "ionice", "nohup",   "setsid", "stdbuf", "taskset", "timeout",
                                             "numactl", "time",   "unshare", "chrt",   "env",    "setpriv", "exec"};

// Of `timeout 10m`, `taskset 0x3`, `env A=1`.
bool is_option_or_figure(const std::string &word) {
  return word.starts_with('-') || word.find('=') != std::string::npos ||
         (!word.empty() && word.front() >= '0' && word.front() <= '9');
}

bool holds(const Known &known, const Words &words) {
  if (known.only_with == nullptr) {
    return true;
  }
  for (auto word = words.begin() + 1; word != words.end(); ++word) {
    for (const char *const *each = known.only_with; *each != nullptr; ++each) {
      if (*word == *each) {
        return true;
      }
    }
    if (!is_option_or_figure(*word)) {
      break;
    }
  }
  return false;
}

// Of env: -u LD_PRELOAD, in two words or as an empty value.
bool unsets_the_preload(const Words &words) {
  for (std::size_t i = 1; i < words.size(); ++i) {
    if (words[i] == "LD_PRELOAD=") {
      return true;
    }
    if ((words[i] == "-u" || words[i] == "--unset") && i + 1 < words.size()) {
      if (words[++i] == "LD_PRELOAD") {
        return true;
      }
    } else if (!is_option_or_figure(words[i])) {
      break;
    }
  }
  return false;
}

}  // namespace

ClearingCommand clearing_command(const Words &words) {
  if (words.empty()) {
    return {};
  }
  const std::string name(file_name(words.front()));
  for (const Known &known : kKnown) {
    if (known.name == name && (holds(known, words) || (name == "env" && unsets_the_preload(words)))) {
      std::string remedy = known.remedy;
      if (const std::size_t at = remedy.find("%s"); at != std::string::npos) {
        remedy.replace(at, 2, name);
      }
      return {name, known.reason, remedy};
    }
  }
  if (std::find(std::begin(kTransparent), std::end(kTransparent), name) == std::end(kTransparent)) {
    return {};
  }
  const auto next = std::find_if_not(words.begin() + 1, words.end(), is_option_or_figure);
  return clearing_command({next, words.end()});
}

}  // namespace ration::cli::doctor
