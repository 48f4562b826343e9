// Finds out what would happen to a command under `ration run`, without starting it. Layer: cli.
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <sstream>
#include <system_error>

#include "base/file_name.h"
#include "cli/base/exit_status.h"
#include "cli/doctor/checkup.h"
#include "cli/launch/launchers.h"
#include "config/values/quotes.h"

namespace ration::cli::doctor {

namespace {

constexpr std::string_view kDriverName = "libcuda.so";
constexpr const char *kAskTheProcess = "run ration doctor --pid PID on it while it runs";

Check check_of(Obstacle obstacle) {
  switch (obstacle) {
    case Obstacle::kStatic:
      return Check::command_static;
    case Obstacle::kSecure:
      return Check::command_privileged;
    case Obstacle::kMusl:
      return Check::command_musl;
    case Obstacle::kForeign:
      return Check::command_foreign;
    case Obstacle::kOldLibrary:
      return Check::command_old_c_library;
    case Obstacle::kNone:
      break;
  }
  return Check::command;
}

// The folders that the program names, with $ORIGIN replaced as ld.so(8) does.
std::vector<std::string> folders_of(const Program &program) {
  std::error_code ignored;
  const std::string origin = std::filesystem::canonical(program.runs, ignored).parent_path().string();
  std::vector<std::string> folders;
  for (const std::string &path : program.elf.search_paths) {
    std::istringstream listed(path);
    for (std::string folder; std::getline(listed, folder, ':');) {
      for (const std::string_view name : {"$ORIGIN", "${ORIGIN}"}) {
        for (std::size_t at = folder.find(name); at != std::string::npos; at = folder.find(name)) {
          folder.replace(at, name.size(), origin);
        }
      }
      folders.push_back(folder);
    }
  }
  return folders;
}

void check_own_driver(const Checkup &checkup, const Program &program, Findings &found) {
  for (const std::string &needed : program.elf.needed) {
    if (needed.find('/') != std::string::npos && file_name(needed).starts_with(kDriverName)) {
      found.push_back({Check::command_own_driver,
                       program.runs + " is linked with the driver by path: " + config::printable(needed),
                       {}});
    }
  }
  for (const std::string &folder : folders_of(program)) {
    std::error_code error;
    const std::string file = std::filesystem::canonical(folder + "/libcuda.so.1", error).string();
    if (!error && file != checkup.machine.driver.path) {
      found.push_back({Check::command_own_driver,
                       program.runs + " looks for the driver in a folder of its own first: " + config::printable(file),
                       {}});
    }
  }
}

std::string described(const std::string &name, const Program &program) {
  std::string text = config::shown(name);
  if (program.path != name) {
    text += ": " + config::printable(program.path);
  }
  if (program.runs != program.path) {
    text += ", a script, which " + config::printable(program.runs) + " executes,";
  }
  return text;
}

// The folder above `path` that this user may not search; empty if there is none.
std::string closed_folder(const std::string &path) {
  std::filesystem::path folder;
  for (const std::filesystem::path &part : std::filesystem::path(path).parent_path()) {
    folder /= part;
    if (access(folder.c_str(), X_OK) != 0 && errno == EACCES) {
      return folder.string();
    }
  }
  return {};
}

// Reports why the command cannot be started, and what helps.
void check_refused(const std::string &name, const Program &program, Findings &found) {
  const Check check = program.exit_status == kNotFound ? Check::command_not_found : Check::command_not_executable;
  std::error_code error;
  std::string remedy;
  if (name.empty()) {
    found.push_back({check, "the name of the command is empty", "write the command after --, or leave -- out"});
    return;
  }
  if (std::filesystem::is_directory(name, error)) {
    remedy = "name a program in it";
  } else if (const std::string closed = closed_folder(name); !closed.empty()) {
    remedy = "this user may not search the folder " + config::printable(closed) +
             ": chmod a+x it, or run ration doctor as the user who starts the program";
  } else if (name == "ration") {
    remedy = "PATH does not have it there; write " + own_command();
  } else if (program.reason.find('\r') != std::string::npos) {
    remedy = "its lines end as on Windows (CR LF); convert it: sed -i 's/\\r$//' " + config::printable(name);
  }
  found.push_back({check, config::printable(program.reason) + config::likely_cause(program.reason), remedy});
}

bool is_run(const CommandWalk::Stage &stage) {
  return file_name(stage.words.front()) == "ration";
}

// Checks a command that starts the next one: it must exist, and must not itself lose LD_PRELOAD. `loses`: it may lose
// it, because a later stage repairs that or it was already reported.
void check_launcher(const CommandWalk::Stage &stage, bool loses, Findings &found) {
  const std::string &name = stage.words.front();
  const Program program = inspect_program(name, stage.search_path);
  if (program.exit_status != 0) {
    check_refused(name, program, found);
  } else if (program.obstacle == Obstacle::kSecure && !loses) {
    found.push_back({Check::command_privileged,
                     described(name, program) + " starts its command without LD_PRELOAD: " + program.reason,
                     {}});
  }
}

void check_program(const Checkup &checkup, Findings &found) {
  const std::string &name = checkup.walk->stages.back().words.front();
  const Program program = last_program(*checkup.walk, checkup.library);
  if (program.exit_status != 0) {
    check_refused(name, program, found);
    return;
  }
  if (program.obstacle != Obstacle::kNone) {
    found.push_back(
        {check_of(program.obstacle), described(name, program) + " cannot be intercepted: " + program.reason, {}});
    return;
  }
  check_own_driver(checkup, program, found);
  found.push_back({Check::command, described(name, program) + " can be intercepted", {}});
  if (program.runs != program.path && checkup.walk->unchecked.empty()) {
    found.push_back({Check::unchecked, "what the script " + config::printable(program.path) + " starts was not checked",
                     kAskTheProcess});
  }
}

}  // namespace

Findings check_command(const Checkup &checkup) {
  Findings found;
  const CommandWalk &walk = *checkup.walk;
  if (walk.loss) {
    found.push_back({Check::command_clears_environment, walk.loss->name + " " + walk.loss->reason, walk.loss->remedy});
  }
  for (const CommandWalk::Change &each : walk.changes) {
    found.push_back({Check::command_changes_settings, said(each), {}});
  }
  const std::size_t launchers = walk.stages.size() - (walk.is_elsewhere ? 0 : 1);
  for (std::size_t i = 0; i < launchers; ++i) {
    const bool is_made_good =
        std::any_of(walk.stages.begin() + static_cast<std::ptrdiff_t>(i), walk.stages.end(), is_run);
    check_launcher(walk.stages[i], walk.loss || walk.has_other_rights || is_made_good, found);
  }
  if (!walk.is_elsewhere) {
    check_program(checkup, found);
  }
  if (!walk.unchecked.empty()) {
    found.push_back({Check::unchecked, "what " + config::printable(walk.unchecked) + " starts was not checked",
                     walk.is_elsewhere ? "run ration doctor there" : kAskTheProcess});
  }
  return found;
}

}  // namespace ration::cli::doctor
