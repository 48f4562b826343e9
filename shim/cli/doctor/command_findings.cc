// What would happen to a command under `ration run`; it is not started. Layer: cli.
#include <algorithm>
#include <filesystem>
#include <sstream>
#include <system_error>

#include "base/file_name.h"
#include "cli/doctor/checkup.h"
#include "cli/doctor/clearing_commands.h"
#include "cli/exit_status.h"
#include "cli/run/c_library.h"
#include "config/values/quotes.h"

namespace ration::cli::doctor {

namespace {

constexpr std::string_view kDriverName = "libcuda.so";

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

// With $ORIGIN replaced, as ld.so(8) does.
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
  std::string text = config::shown(name) + ": " + config::printable(program.path);
  if (program.runs != program.path) {
    text += ", a script, which " + config::printable(program.runs) + " executes";
  }
  return text;
}

}  // namespace

Findings check_command(const Checkup &checkup) {
  Findings found;
  const std::vector<std::string> &words = checkup.run.command;
  const std::string &name = words.front();
  if (const ClearingCommand clears = clearing_command(words); !clears.name.empty()) {
    found.push_back({Check::command_clears_environment, clears.name + " " + clears.reason, clears.remedy});
  }
  Program program = inspect_program(name, checkup.environment.value("PATH"));
  if (program.exit_status != 0) {
    const bool is_absent = program.exit_status == kNotFound;
    found.push_back(
        {is_absent ? Check::command_not_found : Check::command_not_executable, config::printable(program.reason), {}});
    return found;
  }
  if (program.obstacle == Obstacle::kNone) {
    program.reason = lacking_version(program.elf, {checkup.library.preload, checkup.library.core});
    program.obstacle = program.reason.empty() ? Obstacle::kNone : Obstacle::kOldLibrary;
  }
  if (program.obstacle != Obstacle::kNone) {
    found.push_back(
        {check_of(program.obstacle), described(name, program) + " cannot be intercepted: " + program.reason, {}});
    return found;
  }
  check_own_driver(checkup, program, found);
  found.push_back({Check::command, described(name, program), {}});
  return found;
}

}  // namespace ration::cli::doctor
