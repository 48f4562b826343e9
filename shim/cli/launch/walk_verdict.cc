// What a walk says of the program at its end, and of a limit that is to hold there.
#include <filesystem>
#include <system_error>

#include "base/file_name.h"
#include "cli/launch/c_library.h"
#include "cli/launch/command_walk.h"
#include "cli/launch/launchers.h"
#include "config/locks.h"
#include "config/options.h"
#include "config/settings_context.h"
#include "config/values/quotes.h"

namespace ration::cli {

Program last_program(const CommandWalk &walk, const Library &library) {
  Program program = inspect_program(walk.stages.back().words.front(), walk.stages.back().search_path);
  if (program.obstacle == Obstacle::kSecure && walk.has_other_rights) {
    program.obstacle = Obstacle::kNone;  // its caller may already have the rights that it would gain
  }
  find_old_library(library, program);
  return program;
}

CommandWalk::Loss not_intercepted(const std::string &name, const Program &program) {
  const std::string runs = program.runs == program.path ? "" : " (" + program.runs + ")";
  return {name + runs, "cannot be intercepted: " + program.reason, {}};
}

bool only_asks(const std::vector<std::string> &words) {
  const Launcher *launcher = launcher_of(file_name(words.front()));
  return launcher != nullptr && launcher->passing != Passing::kRation && !starts_command(*launcher, words);
}

std::string said(const CommandWalk::Change &change) {
  return change.name + (change.becomes.empty() ? " unsets " + change.variable
                                               : " sets " + change.variable + "=" + config::shown(change.becomes) +
                                                     ", in place of " + config::shown(change.was));
}

std::optional<CommandWalk::Loss> loss_of_limit(const CommandWalk &walk, const Library &library) {
  if (walk.loss) {
    return walk.loss;
  }
  for (const CommandWalk::Change &each : walk.changes) {
    const config::Option *option = config::option_of_variable(each.variable);
    if (each.becomes.empty() && (option->effect == config::Effect::kLimits || option->key == "group")) {
      return CommandWalk::Loss{each.name, "unsets " + each.variable, "let it pass " + each.variable + " on"};
    }
  }
  if (walk.environment.value("RATION_DISABLE") == "1" &&
      !config::is_enforced(config::system_folder())) {  // not that of our own environment, which is checked earlier
    return CommandWalk::Loss{walk.stages.front().words.front(), "starts a program with RATION_DISABLE=1",
                             "leave RATION_DISABLE=1 out"};
  }
  if (walk.is_elsewhere) {
    return std::nullopt;
  }
  const std::string &name = walk.stages.back().words.front();
  const Program program = last_program(walk, library);
  if (program.obstacle != Obstacle::kNone && !only_asks(walk.stages.back().words)) {
    return not_intercepted(name, program);
  }
  return walk.suspicion;
}

std::string own_command() {
  std::error_code error;
  const std::string path = std::filesystem::read_symlink("/proc/self/exe", error).string();
  return error || path.find(' ') != std::string::npos ? "ration" : path;
}

bool is_shell(const std::string &path) {
  const Launcher *launcher = launcher_of(file_name(path));
  return launcher != nullptr && launcher->passing == Passing::kShell;
}

}  // namespace ration::cli
