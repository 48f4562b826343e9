#include "cli/launch/command_walk.h"

#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <variant>

#include "base/file_name.h"
#include "cli/launch/c_library.h"
#include "cli/launch/command_line.h"
#include "cli/launch/launchers.h"
#include "cli/launch/makefile_text.h"
#include "cli/launch/preload_order.h"
#include "cli/launch/program.h"
#include "cli/launch/servers.h"
#include "cli/launch/shell_text.h"
#include "cli/launch/text_walk.h"
#include "cli/launch/walk_state.h"
#include "config/options.h"
#include "config/values/quotes.h"

namespace ration::cli {

namespace {

using CommandWords = std::vector<std::string>;
using Text = WalkState::Text;

constexpr std::size_t kMostStages = 64;
constexpr int kBudget = 1'000;                                      // of texts
constexpr const char *kResetPath = "/usr/local/bin:/bin:/usr/bin";  // setpriv --reset-env

constexpr const char *kElevated = "runs its command with other rights and a new environment, without LD_PRELOAD";
constexpr const char *kFar =
    "starts its command on another machine, or under a service, with an environment of its own";
constexpr const char *kServed = "hands its command to a server that runs without Ration and runs it without LD_PRELOAD";
constexpr const char *kContained = "starts its command in a container, where neither LD_PRELOAD nor the library is";
constexpr const char *kOtherRoot = "starts its command under another root folder, where the library is not";
constexpr const char *kPutFar = "put ration run into the command that it is given there, and install Ration there";
constexpr const char *kPutIntoGiven = "put ration run into what it is given, before the program";
constexpr const char *kPutIntoScript = "put ration run into the script, before the program";
constexpr const char *kPutInside =
    "give the container a share as a device (ration cdi), or mount Ration into it and run ration run inside";

class Walk {
 public:
  explicit Walk(WalkState state) : state_(std::move(state)), given_(*state_.own) {}

  CommandWalk follow(CommandWords words) && {
    CommandWalk &walk = state_.walk;
    while (!words.empty() && walk.stages.size() < kMostStages && walk.unchecked.empty() && !walk.is_elsewhere) {
      std::string &first = words.front();
      const bool is_path = first.find('/') != std::string::npos;
      const std::optional<std::string> path = is_path ? state_.path_from_here(first) : std::optional(first);
      if (is_expanded(first) || !path) {
        walk.unchecked = state_.name;
        walk.is_open = true;
        if (is_held_by_variable(first)) {
          walk.suspicion = CommandWalk::Loss{state_.name, "starts what " + text_of(first) + " holds", {}, false};
        }
        break;
      }
      first = *path;
      CommandWords shown;
      std::transform(words.begin(), words.end(), std::back_inserter(shown), text_of);
      walk.stages.push_back({std::move(shown), walk.environment.value("PATH")});
      words = next(words);
    }
    if (walk.loss) {
      walk.loss->is_certain = walk.loss->is_certain && !walk.is_open;
      walk.environment = *state_.own;
    }
    return std::move(walk);
  }

 private:
  // The command that `words` start; empty if it is unknown.
  CommandWords next(const CommandWords &words) {
    state_.name = file_name(words.front());
    state_.text = Text::kNone;
    const Launcher *launcher = is_own_script(words.front()) ? nullptr : launcher_of(state_.name);
    if (launcher == nullptr || !starts_command(*launcher, words)) {
      return launcher == nullptr ? behind_program(words) : CommandWords{};
    }
    state_.is_named_by_path =
        state_.is_named_by_path || (!words.front().starts_with('/') && words.front() != state_.name);
    const std::size_t begin = std::min(end_of_options(*launcher, words) + launcher->arguments, words.size());
    CommandWords rest(words.begin() + static_cast<std::ptrdiff_t>(begin), words.end());
    switch (launcher->passing) {
      case Passing::kAll:
        return behind_plain(*launcher, words, std::move(rest));
      case Passing::kEnv:
        return behind_env({words.begin() + 1, words.end()});
      case Passing::kElevated:
        state_.walk.has_other_rights = true;
        renew(kElevated);
        for (const std::string &word : words) {  // -E alone keeps no LD_PRELOAD
          if (word.starts_with("--preserve-env=")) {
            state_.set_all(entries_of_preload(word.substr(word.find('=') + 1), ","));
          }
        }
        return state_.after_assignments(std::move(rest));
      case Passing::kLogin:
        return behind_login(*launcher, words, std::move(rest));
      case Passing::kReset:
        if (has_option(*launcher, words, "--reset-env")) {
          state_.lose(kEmptied, state_.put_behind());
          state_.clear_environment(kResetPath);
        }
        return rest;
      case Passing::kCleared:
        return behind_sandbox(words);
      case Passing::kService:
        if (!has_option(*launcher, words, "--scope")) {
          renew(kFar);
          state_.set_all(option_values(*launcher, words, "-E", "--setenv"));
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
        return begin > 0 && state_.name == "chroot" && words[begin - 1] == "/" ? rest
                                                                               : leave(kOtherRoot, kPutInside, rest);
      case Passing::kShell:
        return behind_shell(*launcher, words);
      case Passing::kArch:
        if (words.size() > 1 && !words[1].starts_with('-')) {
          CommandWords without_name(words.begin() + 1, words.end());
          return {without_name.begin() + static_cast<std::ptrdiff_t>(end_of_options(*launcher, without_name)),
                  without_name.end()};
        }
        return rest;
      case Passing::kFind:
        return behind_find(words);
      case Passing::kLine:
        return behind_recorder(*launcher, words);
      case Passing::kJoined:
        return has_option(*launcher, words, "-x") || has_option(*launcher, words, "--exec")
                   ? rest
                   : of_shell_line(joined(rest), {});
      case Passing::kMake:
        return behind_make(*launcher, words);
      case Passing::kChosen:
        state_.walk.unchecked = state_.name;
        state_.walk.is_open = true;
        return {};
      case Passing::kRation:
        return behind_run({words.begin() + 2, words.end()});
    }
    return {};
  }

  // $NAME or $(COMMAND), but not an argument.
  static bool is_held_by_variable(const std::string &word) {
    const std::string text = text_of(word);
    return is_expanded(word) && text.size() > 1 && (text[0] == '`' || text[0] == '$') &&
           std::string_view("0123456789@*").find(text[1]) == std::string_view::npos;
  }

  // A command that passes its environment on, but for strace -E.
  CommandWords behind_plain(const Launcher &launcher, const CommandWords &words, CommandWords rest) {
    for (const std::string &entry :
         launcher.name == "strace" ? option_values(launcher, words, "-E", "--env") : CommandWords{}) {
      entry.find('=') == std::string::npos ? state_.unset(entry) : state_.assign(entry);
    }
    // flock FILE -c 'LINE'
    return rest.size() > 1 && (rest[0] == "-c" || rest[0] == "--command") ? of_shell_line(rest[1], {}) : rest;
  }

  // True for somebody's /x/script, which is not script(1).
  [[nodiscard]] bool is_own_script(const std::string &path) const {
    const Launcher *const launcher = launcher_of(state_.name);
    if (path.find('/') == std::string::npos || launcher == nullptr || launcher->passing == Passing::kChosen) {
      return false;
    }
    const Program program = inspect_program(path, {});
    return program.exit_status == 0 && program.runs != program.path && is_shell(program.runs);
  }

  [[nodiscard]] bool reads_script() const { return state_.name.ends_with("sub") || state_.name == "sbatch"; }

  // What follows has a new environment.
  void renew(const char *reason) {
    state_.lose(reason, state_.put_behind());
    state_.clear_environment(state_.own->value("PATH"));
  }

  CommandWords behind_tmux(const CommandWords &words) {
    const TmuxCall call = read_tmux(words, state_.walk.environment);
    if (!call.starts) {
      return {};
    }
    const auto server = server_at(call.socket);
    const std::string remedy = call.types ? kPutIntoGiven : state_.put_behind();
    if (server) {
      hand_over(*server, remedy);
    }
    state_.set_all(call.environment);
    if (server) {
      check_settings_of_server(remedy);
    }
    if (server && call.types && state_.walk.loss) {
      return leave(kServed, kPutIntoGiven, call.command);
    }
    return call.command.size() == 1 ? of_shell_line(call.command.front(), {}) : call.command;
  }

  CommandWords behind_screen(const Launcher &launcher, const CommandWords &words, CommandWords rest) {
    if (has_option(launcher, words, "-X")) {
      return leave(kServed, kPutIntoGiven, rest);
    }
    if (const auto server = server_of_screen(state_.walk.environment); server && !has_option(launcher, words, "-m")) {
      hand_over(*server, state_.put_behind());
      check_settings_of_server(state_.put_behind());
    }
    return rest;
  }

  // What follows has the server's environment.
  void hand_over(const ProcessFacts &server, const std::string &remedy) {
    given_ = state_.walk.environment;
    if (is_without_library(server)) {
      state_.lose(kServed, remedy);
      state_.clear_environment(state_.own->value("PATH"));
    }
    if (server.is_readable) {
      state_.walk.environment = EnvironmentBlock(server.environment);
    }
  }

  // Reports settings that were given to the client, but that the server does not pass to what it starts.
  void check_settings_of_server(const std::string &remedy) {
    std::string lost;
    for (const config::Option &option : config::options()) {
      const std::string value = given_.value(option.variable);
      if (option.scope != config::Scope::kInternal && !value.empty() &&
          value != state_.walk.environment.value(option.variable)) {
        lost += (lost.empty() ? "" : ", ") + std::string(option.variable) + "=" + config::shown(value);
      }
    }
    if (!lost.empty()) {
      state_.lose("hands its command to a server that was started with other settings and runs it without " + lost,
                  remedy);
    }
  }

  // env(1); `words`: those after its name.
  CommandWords behind_env(CommandWords words) {
    std::size_t at = 0;
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
        state_.lose(kEmptied, state_.put_behind());
        state_.clear_environment({});
      }
      if (!word.starts_with("--") && letter != std::string::npos) {
        word.erase(1, letter - 1);
      }
      if (const auto name = value("-u", "--unset")) {
        state_.unset(*name);
      } else if (const auto line = value("-S", "--split-string")) {
        CommandWords split = simple_command(*line).value_or(CommandWords{});
        split.insert(split.end(), words.begin() + static_cast<std::ptrdiff_t>(at) + 1, words.end());
        words = std::move(split);
        at = static_cast<std::size_t>(-1);  // start again with these words
      } else if (const auto folder = value("-C", "--chdir")) {
        state_.enter(*folder);
      }
    }
    at += at < words.size() && words[at] == "--" ? 1 : 0;
    words.erase(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(at));
    return state_.after_assignments(std::move(words));
  }

  // su(1), runuser(1). Started by root, they keep the environment unless a login is asked for.
  CommandWords behind_login(const Launcher &launcher, const CommandWords &words, CommandWords rest) {
    const bool is_login = std::any_of(words.begin() + 1, words.end(), [](const std::string &word) {
      return word == "-" || word == "-l" || word == "--login" || word == "-lc";
    });
    state_.walk.has_other_rights = true;
    if (is_login || geteuid() != 0) {
      state_.lose(is_login ? kEmptied : kElevated,
                  launcher.name == "su"
                      ? "put ration run after it: su USER -c '" + own_command() + " run OPTIONS -- COMMAND'"
                      : state_.put_behind());
      state_.clear_environment(state_.own->value("PATH"));
    }
    if (geteuid() == 0) {
      state_.set_all(
          entries_of_preload(option_value(launcher, words, "-w", "--whitelist-environment").value_or(""), ","));
    }
    if (launcher.name == "runuser" && has_option(launcher, words, "-u")) {
      return rest;
    }
    const auto line = option_value(launcher, words, "-c", "--command");
    return line ? of_shell_line(*line, {}) : CommandWords{};
  }

  // A program that is no launcher: possibly a script.
  CommandWords behind_program(const CommandWords &words) {
    const Program program = inspect_program(words.front(), state_.walk.environment.value("PATH"));
    const Shebang shebang = read_shebang(program.path);
    const CommandWords arguments(words.begin() + 1, words.end());
    if (program.exit_status == 0 && file_name(shebang.interpreter) == "env" && shebang.argument.starts_with('-')) {
      // #!/usr/bin/env -S -i sh
      CommandWords own = {shebang.interpreter, shebang.argument, program.path};
      own.insert(own.end(), arguments.begin(), arguments.end());
      if (!state_.walk.loss && --*state_.budget > 0 && ration::cli::follow(state_, own).loss) {
        return own;
      }
    }
    return program.exit_status == 0 && program.runs != program.path && is_shell(program.runs)
               ? behind_script(program.path, arguments, is_posix(file_name(program.runs)))
               : behind_arguments(arguments);
  }

  CommandWords behind_script(const std::string &path, const CommandWords &arguments, bool is_posix_shell) {
    const std::string text = text_of_file(path, *state_.budget);
    if (text.empty()) {
      state_.walk.unchecked = "the script " + path;
      return behind_arguments(arguments);
    }
    state_.script = path;
    return of_text(Text::kScript, text, arguments, is_posix_shell);
  }

  CommandWords of_text(Text kind, const std::string &text, const CommandWords &arguments, bool is_posix_shell) {
    state_.text = kind;
    TextWalk walk(state_, arguments);
    if (!is_posix_shell) {
      walk.doubt();
    }
    walk.read(text);
    CommandWords next = walk.settle(state_);
    return next.empty() ? behind_arguments(arguments) : next;
  }

  // An unknown program may start what its arguments name.
  CommandWords behind_arguments(const CommandWords &words) {
    if (state_.walk.loss || state_.walk.suspicion) {
      return {};
    }
    state_.text = Text::kArgument;
    WalkState before = state_;
    before.walk.unchecked.clear();
    before.walk.is_open = false;
    TextWalk walk(std::move(before));
    walk.doubt();
    bool is_command = false;
    for (auto word = words.begin(); word != words.end(); ++word) {
      const Launcher *launcher = launcher_of(file_name(*word));
      if (!is_command && launcher != nullptr && (launcher->passing == Passing::kEnv || launcher->name == "sh")) {
        walk.add({word, words.end()});
        is_command = true;
      } else if (!is_expanded(*word) && word->find(kPreload) != std::string::npos &&
                 word->find_first_of(" ;(") != std::string::npos) {
        walk.read(*word);
      }
    }
    return walk.settle(state_);
  }

  CommandWords behind_find(const CommandWords &words) {
    constexpr std::string_view kExecuting[] = {"-exec", "-execdir", "-ok", "-okdir"};
    TextWalk walk(state_);
    bool executes = false;
    for (auto word = words.begin(); word != words.end(); ++word) {
      if (std::find(std::begin(kExecuting), std::end(kExecuting), *word) == std::end(kExecuting)) {
        continue;
      }
      const auto end = std::find_if(word, words.end(), [](const auto &each) { return each == ";" || each == "+"; });
      CommandWords command;
      std::transform(word + 1, end, std::back_inserter(command), [](const std::string &each) {
        return each.find("{}") == std::string::npos ? each : std::string(1, kExpanded) + each;
      });
      walk.add(std::move(command));
      executes = true;
      word = end == words.end() ? end - 1 : end;
    }
    return executes ? walk.settle(state_) : CommandWords{};
  }

  // script(1)
  CommandWords behind_recorder(const Launcher &launcher, const CommandWords &words) {
    const auto dashes = std::find(words.begin(), words.end(), "--");
    const auto line = dashes == words.end() ? option_value(launcher, words, "-c", "--command")
                                            : std::optional(joined({dashes + 1, words.end()}));
    return of_shell_line(line.value_or(""), {});
  }

  CommandWords behind_make(const Launcher &launcher, const CommandWords &words) {
    const CommandWords call = options_first(launcher, words);
    for (const std::string &folder : option_values(launcher, call, "-C", "--directory")) {
      state_.enter(folder);
    }
    MakeCall made{option_values(launcher, call, "-f", "--file"), {}, {}};
    if (made.files.empty()) {
      made.files = {"GNUmakefile", "makefile", "Makefile"};
    }
    for (std::size_t at = end_of_options(launcher, call); at < call.size(); ++at) {
      (call[at].find('=') == std::string::npos ? made.goals : made.assignments).push_back(call[at]);
    }
    state_.text = Text::kMakefile;
    state_.set_all(made.assignments);  // make exports them
    TextWalk walk(state_);
    walk.doubt();  // its rules run in no known order
    for (const std::string &line : lines_of_makefiles(std::move(made), state_)) {
      walk.read(line);
    }
    return walk.settle(state_);
  }

  static std::string joined(const CommandWords &words) {
    std::string line;
    for (const std::string &word : words) {
      line += (line.empty() ? "" : " ") + word;
    }
    return line;
  }

  CommandWords behind_sandbox(const CommandWords &words) {
    if (const auto run = run_among(words); run != words.end()) {
      return {run, words.end()};
    }
    if (std::find(words.begin(), words.end(), "--clearenv") != words.end()) {
      state_.lose(kEmptied, "leave --clearenv out, or put ration run after it");
    }
    state_.walk.unchecked = state_.name;
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
    state_.walk.is_elsewhere = true;
    if (run_among(words) != words.end() || std::any_of(words.begin(), words.end(), [](const std::string &word) {
          return word.find("ration run ") != std::string::npos;
        })) {
      state_.walk.loss.reset();
      state_.walk.unchecked = state_.name;
      return {};
    }
    state_.lose(reason, remedy);
    if (state_.walk.loss && std::any_of(words.begin(), words.end(), [](const std::string &word) {
          return word.find(kPreload) != std::string::npos;  // docker run -e LD_PRELOAD, with a mounted library
        })) {
      state_.walk.loss->is_certain = false;
    }
    return {};
  }

  CommandWords behind_shell(const Launcher &launcher, const CommandWords &words) {
    const std::size_t at = end_of_options(launcher, words);
    const std::size_t next = std::min(at + 1, words.size());
    const CommandWords arguments(words.begin() + static_cast<std::ptrdiff_t>(next), words.end());
    const bool is_line = has_option(launcher, words, "-c");
    const std::optional<std::string> script =
        at < words.size() && !is_expanded(words[at]) ? state_.path_from_here(words[at]) : std::nullopt;
    if (!is_line && script && !has_option(launcher, words, "-s")) {
      return behind_script(*script, arguments, is_posix(state_.name));
    }
    if (!is_line || at == words.size()) {
      state_.walk.unchecked = state_.name;
      state_.walk.is_open = is_line || state_.walk.is_open;
      return {};
    }
    const auto after_zero = arguments.begin() + (arguments.empty() ? 0 : 1);
    return of_shell_line(text_of(words[at]), {after_zero, arguments.end()},
                         is_posix(state_.name) && !is_expanded(words[at]), arguments.empty() ? "" : arguments.front());
  }

  // Other shells have other words.
  static bool is_posix(std::string_view shell) { return shell != "fish" && !shell.ends_with("csh"); }

  // `arguments`: those after `zero`, which is $0.
  CommandWords of_shell_line(const std::string &line, const CommandWords &arguments, bool is_posix_shell = true,
                             const std::string &zero = {}) {
    state_.script = zero;
    return of_text(Text::kLine, line, arguments, is_posix_shell);
  }

  // `words`: those after `ration run`.
  CommandWords behind_run(const CommandWords &words) {
    const auto split = split_line(words, flags_of_run());
    const auto *line = std::get_if<SplitLine>(&split);
    state_.walk.loss.reset();
    state_.walk.changes.clear();  // `ration run` sets its own limits, or none
    if (line == nullptr) {
      return {};  // `ration run` itself reports what is wrong
    }
    state_.walk.environment.set(kPreload,
                                preload_order(state_.walk.environment.value(kPreload), state_.library->preload, {}));
    for (const std::string &own : line->own) {
      const std::size_t equals = std::min(own.find('='), own.size());
      const std::string flag = own.substr(0, equals);
      const std::string value = own.substr(std::min(equals + 1, own.size()));
      if (flag == "--sim") {
        state_.walk.probed.set("SIMCUDA_DEVICES", value);
        state_.walk.probed.set("LD_LIBRARY_PATH",
                               prepend_folder(state_.walk.probed.value("LD_LIBRARY_PATH"), state_.library->simulator));
      }
      for (const config::Option &option : config::options()) {
        if (option.flag == flag && !value.empty() && option.key != "group_tree") {
          state_.give(std::string(option.variable), value);
        }
      }
    }
    return line->command;
  }

  WalkState state_;
  EnvironmentBlock given_;  // the environment that a server's client was given
};

}  // namespace

CommandWalk follow(WalkState state, const std::vector<std::string> &words) {
  return Walk(std::move(state)).follow(words);
}

CommandWalk walk_command(const std::vector<std::string> &words, const EnvironmentBlock &own, const Library &library) {
  int budget = kBudget;
  return follow(
      {&own, &library, &budget, {{}, own, own, {}, {}, {}, {}, false, false, false}, {}, {}, {}, false, {}, true},
      words);
}

}  // namespace ration::cli
