#include "cli/launch/command_walk.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <variant>

#include "base/file_name.h"
#include "cli/launch/c_library.h"
#include "cli/launch/command_line.h"
#include "cli/launch/launchers.h"
#include "cli/launch/preload_order.h"
#include "cli/launch/program.h"
#include "cli/launch/servers.h"
#include "config/options.h"
#include "config/values/quotes.h"

namespace ration::cli {

namespace {

using CommandWords = std::vector<std::string>;

constexpr std::size_t kMostStages = 64;
constexpr std::size_t kMostLines = 10'000;  // the most that are read from a script
constexpr std::string_view kPreload = "LD_PRELOAD";
constexpr const char *kResetPath = "/usr/local/bin:/bin:/usr/bin";  // setpriv --reset-env

constexpr const char *kElevated = "runs its command with other rights and a new environment, without LD_PRELOAD";
constexpr const char *kEmptied = "starts its command without LD_PRELOAD as it is called here";
constexpr const char *kFar =
    "starts its command on another machine, or under a service, with an environment of its own";
constexpr const char *kServed = "hands its command to a server that runs without Ration and runs it without LD_PRELOAD";
constexpr const char *kContained = "starts its command in a container, where neither LD_PRELOAD nor the library is";
constexpr const char *kOtherRoot = "starts its command under another root folder, where the library is not";
// These commands pass the environment on.
constexpr std::string_view kPassOn[] = {"srun",        "sbatch", "flux",    "at",        "batch",           "apptainer",
                                        "singularity", "chroot", "nsenter", "distrobox", "distrobox-enter", "toolbox"};
constexpr const char *kPutFar = "put ration run into the command that it is given there, and install Ration there";
constexpr const char *kPutIntoGiven = "put ration run into what it is given, before the program";
constexpr const char *kPutIntoScript = "put ration run into the script, before the program";
constexpr const char *kPutInside =
    "give the container a share as a device (ration cdi), or mount Ration into it and run ration run inside";

// Words of shells that are not programs, or that more than one command may follow.
constexpr std::string_view kShellWords[] = {"if",   "for",    "while", "until", "case",   "select", "function",
                                            "cd",   "source", ".",     "eval",  "export", "unset",  "set",
                                            "trap", "ulimit", "umask", "exit",  "return", "[[",     "alias",
                                            "read", "local",  "wait",  "test",  "!"};

class Walk {
 public:
  Walk(const EnvironmentBlock &own, const Library &library)
      : own_(own), library_(library), walk_{{}, own, own, {}, {}, {}, {}, false, false}, given_(own) {}

  CommandWalk follow(CommandWords words) && {
    while (!words.empty() && walk_.stages.size() < kMostStages && walk_.unchecked.empty() && !walk_.is_elsewhere) {
      walk_.stages.push_back({words, walk_.environment.value("PATH")});
      words = next(words);
    }
    if (walk_.loss) {
      walk_.environment = own_;
    }
    return std::move(walk_);
  }

 private:
  // The command that `words` start; empty if it is unknown.
  CommandWords next(const CommandWords &words) {
    name_ = file_name(words.front());
    is_named_by_path_ =
        is_named_by_path_ || (!words.front().empty() && words.front().front() != '/' && words.front() != name_);
    const Launcher *launcher = launcher_of(name_);
    if (launcher == nullptr || !starts_command(*launcher, words)) {
      return launcher == nullptr ? behind_script(words) : CommandWords{};
    }
    const std::size_t begin = std::min(end_of_options(*launcher, words) + launcher->arguments, words.size());
    CommandWords rest(words.begin() + static_cast<std::ptrdiff_t>(begin), words.end());
    switch (launcher->passing) {
      case Passing::kAll:
        return rest;
      case Passing::kEnv:
        return behind_env({words.begin() + 1, words.end()});
      case Passing::kElevated:
        walk_.has_other_rights = true;
        renew(kElevated);
        return after_assignments(std::move(rest));
      case Passing::kLogin:
        return behind_login(*launcher, words, std::move(rest));
      case Passing::kReset:
        if (has_option(*launcher, words, "--reset-env")) {
          lose(kEmptied, put_behind());
          clear_environment(kResetPath);
        }
        return rest;
      case Passing::kCleared:
        return behind_sandbox(words);
      case Passing::kService:
        if (!has_option(*launcher, words, "--scope")) {
          renew(kFar);
          set_all(option_values(*launcher, words, "-E", "--setenv"));
        }
        return rest;
      case Passing::kServer:
        return leave(kServed, kPutIntoGiven, rest);
      case Passing::kTmux:
        return behind_tmux(words);
      case Passing::kScreen:
        return behind_screen(*launcher, words, std::move(rest));
      case Passing::kFar:
        return leave(kFar, reads_script() ? kPutIntoScript : kPutFar, rest);
      case Passing::kContained:
        return leave(kContained, kPutInside, rest);
      case Passing::kOtherRoot:
        return begin > 0 && name_ == "chroot" && words[begin - 1] == "/" ? rest : leave(kOtherRoot, kPutInside, rest);
      case Passing::kShell:
        return behind_shell(*launcher, words);
      case Passing::kRation:
        return behind_run({words.begin() + 2, words.end()});
    }
    return {};
  }

  [[nodiscard]] bool reads_script() const { return name_.ends_with("sub") || name_ == "sbatch"; }

  [[nodiscard]] std::string put_behind() const {
    return "put ration run after it: " + name_ + " ... " + own_command() + " run OPTIONS -- COMMAND";
  }

  void lose(const std::string &reason, std::string remedy) {
    if (!walk_.loss) {
      const bool passes_on = std::find(std::begin(kPassOn), std::end(kPassOn), name_) != std::end(kPassOn);
      walk_.loss = CommandWalk::Loss{name_, reason, std::move(remedy), !passes_on && !is_named_by_path_};
    }
  }

  void clear_environment(const std::string &search_path) {
    const char *const none[] = {nullptr};
    walk_.environment = EnvironmentBlock(none);
    if (!search_path.empty()) {
      walk_.environment.set("PATH", search_path);
    }
  }

  // What follows has a new environment.
  void renew(const char *reason) {
    lose(reason, put_behind());
    clear_environment(own_.value("PATH"));
  }

  void set(const std::string &name, const std::string &value) {
    give(name, value);
    note_change(name, value);
  }

  void note_change(const std::string &name, const std::string &becomes) {
    std::erase_if(walk_.changes, [&](const CommandWalk::Change &each) { return each.variable == name; });
    const std::string was = own_.value(name);
    if (config::option_of_variable(name) != nullptr && !was.empty() && was != becomes) {
      walk_.changes.push_back({name_, name, was, becomes});
    }
  }

  void give(const std::string &name, const std::string &value) {
    walk_.environment.set(name, value);
    if (name != kPreload) {
      walk_.probed.set(name, value);
      return;
    }
    const std::vector<std::string> entries = entries_of_preload(value);
    if (std::any_of(entries.begin(), entries.end(), is_our_library)) {
      walk_.loss.reset();
    } else {
      lose(value.empty() ? kEmptied
                         : "starts its command with LD_PRELOAD=" + config::shown(value) + ", without libration.so",
           value.empty() ? put_behind() : put_behind() + "; it keeps what LD_PRELOAD has");
    }
  }

  void unset(const std::string &name) {
    note_change(name, {});
    walk_.environment.unset(name);
    walk_.probed.unset(name);
    if (name == kPreload) {
      lose(kEmptied, put_behind());
    }
  }

  // Sets the NAME=VALUE words at the beginning; returns the command that follows them.
  CommandWords after_assignments(CommandWords words) {
    std::size_t at = 0;
    for (; at < words.size() && is_assignment(words[at]); ++at) {
      const std::size_t equals = words[at].find('=');
      set(words[at].substr(0, equals), words[at].substr(equals + 1));
    }
    words.erase(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(at));
    return words;
  }

  // Sets NAME=VALUE; for a NAME without a value, sets the value that it has in our environment.
  void set_all(const CommandWords &words) {
    for (const std::string &word : words) {
      const std::size_t equals = std::min(word.find('='), word.size());
      const std::string name = word.substr(0, equals);
      set(name, equals < word.size() ? word.substr(equals + 1) : own_.value(name));
    }
  }

  CommandWords behind_tmux(const CommandWords &words) {
    const TmuxCall call = read_tmux(words, walk_.environment);
    if (!call.starts) {
      return {};
    }
    const auto server = server_at(call.socket);
    const std::string remedy = call.types ? kPutIntoGiven : put_behind();
    if (server) {
      hand_over(*server, remedy);
    }
    set_all(call.environment);
    if (server) {
      check_settings_of_server(remedy);
    }
    if (server && call.types && walk_.loss) {
      return leave(kServed, kPutIntoGiven, call.command);
    }
    return call.command.size() == 1 ? of_shell_line(call.command.front(), {}) : call.command;
  }

  CommandWords behind_screen(const Launcher &launcher, const CommandWords &words, CommandWords rest) {
    if (has_option(launcher, words, "-X")) {
      return leave(kServed, kPutIntoGiven, rest);
    }
    if (const auto server = server_of_screen(walk_.environment); server && !has_option(launcher, words, "-m")) {
      hand_over(*server, put_behind());
      check_settings_of_server(put_behind());
    }
    return rest;
  }

  // What follows has the server's environment.
  void hand_over(const ProcessFacts &server, const std::string &remedy) {
    given_ = walk_.environment;
    if (is_without_library(server)) {
      lose(kServed, remedy);
      clear_environment(own_.value("PATH"));
    }
    if (server.is_readable) {
      walk_.environment = EnvironmentBlock(server.environment);
    }
  }

  // Reports settings that were given to the client, but that the server does not pass to what it starts.
  void check_settings_of_server(const std::string &remedy) {
    std::string lost;
    for (const config::Option &option : config::options()) {
      const std::string value = given_.value(option.variable);
      if (option.scope != config::Scope::kInternal && !value.empty() &&
          value != walk_.environment.value(option.variable)) {
        lost += (lost.empty() ? "" : ", ") + std::string(option.variable) + "=" + config::shown(value);
      }
    }
    if (!lost.empty()) {
      lose("hands its command to a server that was started with other settings and runs it without " + lost, remedy);
    }
  }

  // env(1); `words`: those after its name.
  CommandWords behind_env(CommandWords words) {
    std::size_t at = 0;
    bool is_moved = false;
    for (; at < words.size() && words[at].size() > 0 && words[at][0] == '-' && words[at] != "--"; ++at) {
      std::string word = words[at];
      const auto value = [&](std::string_view letter, std::string_view name) -> std::optional<std::string> {
        const std::size_t equals = word.find('=');
        if (is_long_option(word, name) && equals != std::string::npos) {
          return word.substr(equals + 1);
        }
        if (word == letter || is_long_option(word, name)) {
          return at + 1 < words.size() ? words[++at] : "";
        }
        return word.starts_with(letter) && word[1] != '-' ? std::optional(word.substr(2)) : std::nullopt;
      };
      // The first letter that is not an option without a value.
      const std::size_t letter = word.find_first_not_of("0iv", 1);
      const std::string_view before = std::string_view(word).substr(0, letter);
      const bool clears = word == "-" || is_long_option(word, "--ignore-environment") ||
                          (!word.starts_with("--") && before.find('i') != std::string_view::npos);
      if (clears) {
        lose(kEmptied, put_behind());
        clear_environment({});
      }
      if (!word.starts_with("--") && letter != std::string::npos) {
        word.erase(1, letter - 1);
      }
      if (const auto name = value("-u", "--unset")) {
        unset(*name);
      } else if (const auto line = value("-S", "--split-string")) {
        CommandWords split = simple_command(*line).value_or(CommandWords{});
        split.insert(split.end(), words.begin() + static_cast<std::ptrdiff_t>(at) + 1, words.end());
        words = std::move(split);
        at = static_cast<std::size_t>(-1);  // start again with these words
      } else {
        is_moved = value("-C", "--chdir") || is_moved;
      }
    }
    at += at < words.size() && words[at] == "--" ? 1 : 0;
    words.erase(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(at));
    words = after_assignments(std::move(words));
    if (is_moved && !words.empty() && words.front().find('/') != std::string::npos && words.front().front() != '/') {
      walk_.unchecked = name_;  // a relative name would mean another file there
      return {};
    }
    return words;
  }

  // su(1), runuser(1). Started by root, they keep the environment unless a login is asked for.
  CommandWords behind_login(const Launcher &launcher, const CommandWords &words, CommandWords rest) {
    const bool is_login = std::any_of(words.begin() + 1, words.end(), [](const std::string &word) {
      return word == "-" || word == "-l" || word == "--login" || word == "-lc";
    });
    walk_.has_other_rights = true;
    if (is_login || geteuid() != 0) {
      lose(is_login ? kEmptied : kElevated,
           launcher.name == "su" ? "put ration run after it: su USER -c '" + own_command() + " run OPTIONS -- COMMAND'"
                                 : put_behind());
      clear_environment(own_.value("PATH"));
    }
    if (geteuid() == 0) {
      set_all(entries_of_preload(option_value(launcher, words, "-w", "--whitelist-environment").value_or(""), ","));
    }
    if (launcher.name == "runuser" && has_option(launcher, words, "-u")) {
      return rest;
    }
    const auto line = option_value(launcher, words, "-c", "--command");
    return line ? of_shell_line(*line, {}) : CommandWords{};
  }

  // Detects a script whose first line makes env clear the environment: `#!/usr/bin/env -S -i sh`.
  [[nodiscard]] CommandWords behind_script(const CommandWords &words) const {
    const Program program = inspect_program(words.front(), walk_.environment.value("PATH"));
    const Shebang shebang = read_shebang(program.path);
    if (program.exit_status != 0 || file_name(shebang.interpreter) != "env" || !shebang.argument.starts_with("-S")) {
      return {};
    }
    const CommandWords own = simple_command(shebang.argument).value_or(CommandWords{});
    const bool clears = std::any_of(own.begin(), own.end(), [](const std::string &word) {
      return word == "-i" || word.find(kPreload) != std::string::npos;
    });
    CommandWords next = {shebang.interpreter, shebang.argument, program.path};
    next.insert(next.end(), words.begin() + 1, words.end());
    return clears ? next : CommandWords{};
  }

  CommandWords behind_sandbox(const CommandWords &words) {
    if (const auto run = run_among(words); run != words.end()) {
      return {run, words.end()};
    }
    if (std::find(words.begin(), words.end(), "--clearenv") != words.end()) {
      lose(kEmptied, "leave --clearenv out, or put ration run after it");
    }
    walk_.unchecked = name_;
    return {};
  }

  // The position of `ration run`; end() if it does not occur.
  static CommandWords::const_iterator run_among(const CommandWords &words) {
    const auto names_run = [](const std::string &name, const std::string &verb) {
      return file_name(name) == "ration" && verb == "run";
    };
    return std::adjacent_find(words.begin(), words.end(), names_run);
  }

  // Ends the walk: what follows cannot be examined from here.
  CommandWords leave(const char *reason, const char *remedy, const CommandWords &words) {
    walk_.is_elsewhere = true;
    if (run_among(words) != words.end() || std::any_of(words.begin(), words.end(), [](const std::string &word) {
          return word.find("ration run ") != std::string::npos;
        })) {
      walk_.loss.reset();
      walk_.unchecked = name_;
      return {};
    }
    lose(reason, remedy);
    if (walk_.loss && std::any_of(words.begin(), words.end(), [](const std::string &word) {
          return word.find(kPreload) != std::string::npos;  // docker run -e LD_PRELOAD, with a mounted library
        })) {
      walk_.loss->is_certain = false;
    }
    return {};
  }

  CommandWords behind_shell(const Launcher &launcher, const CommandWords &words) {
    if (!has_option(launcher, words, "-c")) {
      walk_.unchecked = name_;
      return {};
    }
    const std::size_t at = end_of_options(launcher, words);
    return at == words.size()
               ? CommandWords{}
               : of_shell_line(words[at], {words.begin() + static_cast<std::ptrdiff_t>(at) + 1, words.end()});
  }

  // `arguments`: $0 and those after it.
  CommandWords of_shell_line(const std::string &line, const CommandWords &arguments) {
    if (line == "\"$@\"" || line == "exec \"$@\"") {
      return arguments.empty() ? CommandWords{} : CommandWords{arguments.begin() + 1, arguments.end()};
    }
    std::optional<CommandWords> words = simple_command(line);
    if (words) {
      *words = after_assignments(std::move(*words));
    }
    if (!words || words->empty() ||
        std::find(std::begin(kShellWords), std::end(kShellWords), words->front()) != std::end(kShellWords)) {
      const std::string loss = loss_in_line(line, walk_.environment, library_);
      for (const CommandWords &each : commands_in(line)) {
        if (const auto run = run_among(each); run != each.end()) {
          (void)behind_run({run + 2, each.end()});  // takes over the settings that it gives
        }
      }
      walk_.suspicion = loss.empty() ? "" : "has a command line that " + loss;
      walk_.unchecked = name_ + (loss.empty() ? "" : ", whose command line " + loss + ",");
      return {};
    }
    return std::move(*words);
  }

  // `words`: those after `ration run`.
  CommandWords behind_run(const CommandWords &words) {
    const auto split = split_line(words, flags_of_run());
    const auto *line = std::get_if<SplitLine>(&split);
    walk_.loss.reset();
    walk_.changes.clear();  // `ration run` sets its own limits, or none
    if (line == nullptr) {
      return {};  // `ration run` itself reports what is wrong
    }
    walk_.environment.set(kPreload, preload_order(walk_.environment.value(kPreload), library_.preload, {}));
    for (const std::string &own : line->own) {
      const std::size_t equals = std::min(own.find('='), own.size());
      const std::string flag = own.substr(0, equals);
      const std::string value = own.substr(std::min(equals + 1, own.size()));
      if (flag == "--sim") {
        walk_.probed.set("SIMCUDA_DEVICES", value);
        walk_.probed.set("LD_LIBRARY_PATH", prepend_folder(walk_.probed.value("LD_LIBRARY_PATH"), library_.simulator));
      }
      for (const config::Option &option : config::options()) {
        if (option.flag == flag && !value.empty() && option.key != "group_tree") {
          give(std::string(option.variable), value);
        }
      }
    }
    return line->command;
  }

  const EnvironmentBlock &own_;
  const Library &library_;
  CommandWalk walk_;
  EnvironmentBlock given_;         // the environment that a server's client was given
  std::string name_;               // the name of the command that is being examined
  bool is_named_by_path_ = false;  // ./env: this command, or one before it, may be another program of that name
};

}  // namespace

CommandWalk walk_command(const std::vector<std::string> &words, const EnvironmentBlock &own, const Library &library) {
  return Walk(own, library).follow(words);
}

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
  if (walk.environment.value("RATION_DISABLE") == "1") {  // not that of our own environment, which is checked earlier
    return CommandWalk::Loss{walk.stages.front().words.front(), "starts a program with RATION_DISABLE=1",
                             "leave RATION_DISABLE=1 out"};
  }
  if (walk.is_elsewhere) {
    return std::nullopt;
  }
  const std::string &name = walk.stages.back().words.front();
  const Program program = last_program(walk, library);
  if (program.obstacle != Obstacle::kNone) {
    return not_intercepted(name, program);
  }
  const std::string loss = loss_in_script(program, walk.environment, library);
  const std::string suspicion = loss.empty() ? walk.suspicion : "is a script that " + loss;
  return suspicion.empty() ? std::nullopt : std::optional(CommandWalk::Loss{name, suspicion, {}, false});
}

std::string loss_in_script(const Program &program, const EnvironmentBlock &own, const Library &library) {
  if (program.runs == program.path || !is_shell(program.runs)) {
    return {};
  }
  std::ifstream file(program.path);
  std::string line;
  for (std::size_t i = 0; i < kMostLines && std::getline(file, line); ++i) {
    line.erase(0, line.find_first_not_of(" \t"));
    if (line.empty() || line.front() == '#') {
      continue;
    }
    if (std::string loss = loss_in_line(line, own, library); !loss.empty()) {
      return loss;
    }
  }
  return {};
}

std::string loss_in_line(const std::string &line, const EnvironmentBlock &own, const Library &library) {
  if (line.find(kPreload) != std::string::npos) {
    return "changes LD_PRELOAD";
  }
  for (const CommandWords &words : commands_in(line)) {
    if (const CommandWalk walk = walk_command(words, own, library); walk.loss) {
      return "loses LD_PRELOAD by " + walk.loss->name;
    }
  }
  return {};
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
