#include "cli/run/run_preparation.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "cli/base/exit_status.h"
#include "cli/base/log.h"
#include "cli/launch/c_library.h"
#include "cli/launch/command_walk.h"
#include "cli/launch/preload_order.h"
#include "cli/run/group_tree.h"
#include "cli/run/log_target.h"
#include "cli/run/simulated_machine.h"
#include "cli/run/simulation_notes.h"
#include "config/flag_marks.h"
#include "config/options.h"
#include "config/settings_context.h"
#include "config/values/limit_map.h"
#include "config/values/option_parsers.h"
#include "config/values/quotes.h"
#include "events/diagnostics.h"

namespace ration::cli {

namespace {

constexpr std::string_view kTreeKey = "group_tree";  // its option holds a limit, its variable also numbers
constexpr std::string_view kMarks = "RATION_FLAGS";

// The program may change its current folder before it opens the log, so the path is made absolute. The log's name is a
// pattern, so any '%' in the folder is doubled. "-" is left to the setting's parser, which refuses it.
std::string absolute_log(const std::string &path) {
  if (path.front() == '/' || path == "-") {
    return path;
  }
  std::error_code removed;
  std::string here = std::filesystem::current_path(removed).string();
  if (removed) {
    throw Refusal{kOurError, "--log " + config::shown(path) +
                                 ": the folder that it would be in was removed; write an absolute path"};
  }
  for (std::size_t at = here.find('%'); at != std::string::npos; at = here.find('%', at + 2)) {
    here.insert(at, 1, '%');
  }
  return here + "/" + path;
}

const std::string *flag_value(const RunRequest &request, std::string_view key) {
  const auto found = std::find_if(request.flags.begin(), request.flags.end(),
                                  [&](const auto &flag) { return flag.first->key == key; });
  return found == request.flags.end() ? nullptr : &found->second;
}

// The program as the process will see itself: its file with links resolved, a script's words as the kernel arranges
// them.
config::ProgramIdentity identity_of(const std::vector<std::string> &command, const std::string &search_path) {
  const Program program = inspect_program(command.front(), search_path);
  std::vector<std::string> words = program.words.empty() ? std::vector{command.front()} : program.words;
  words.insert(words.end(), command.begin() + 1, command.end());
  std::string runs = program.runs;
  if (const std::size_t loaders = config::words_of_loader(words);
      is_dynamic_linker(program.elf) && loaders < words.size()) {
    words.erase(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(loaders));
    runs = words.front();
  }
  std::error_code unknown;
  const std::filesystem::path file = std::filesystem::canonical(runs, unknown);
  return {unknown ? runs : file.string(), config::joined_words(words)};
}

const std::string *flag_of(const RunRequest &request, const config::Problem &problem) {
  return problem.in_variable && problem.key != kTreeKey ? flag_value(request, problem.key) : nullptr;
}

// Logs a line for each mistake; throws Refusal if there is one.
config::Settings read_strictly(const RunRequest &request, const EnvironmentBlock &environment) {
  std::vector<config::Problem> problems;
  config::Settings settings = settings_of(request, environment, problems);
  std::erase_if(problems, [](const config::Problem &each) {
    return !each.fatal_for_cli;  // the library reports it in each process that it concerns
  });
  for (const config::Problem &problem : problems) {
    log_error(request.verb + ": " + as_written(request, problem) + ": " + problem.sentence);
  }
  if (!problems.empty()) {
    throw Refusal{status_of(request, problems), {}};
  }
  return settings;
}

void set_by_flag(const config::Option &option, const std::string &value, EnvironmentBlock &environment) {
  environment.set(kMarks, config::mark_flag(environment.value(kMarks), option.key, value));
  environment.set(option.variable, value);
}

void refuse_program(const RunRequest &request, const Program &program) {
  if (program.exit_status == 0) {
    return;
  }
  const std::string *const log = flag_value(request, "log");
  std::error_code ignored;
  const bool is_taken =
      log != nullptr && access(log->c_str(), X_OK) == 0 && std::filesystem::is_regular_file(*log, ignored);
  throw Refusal{program.exit_status, program.reason + (is_taken ? "; --log took " + config::shown(*log) : "")};
}

}  // namespace

std::string as_written(const RunRequest &request, const config::Problem &problem) {
  const std::string *flag = flag_of(request, problem);
  return flag == nullptr ? problem.written
                         : std::string(config::option_of_key(problem.key)->flag) + " " + config::shown(*flag);
}

int status_of(const RunRequest &request, const std::vector<config::Problem> &problems) {
  const bool in_line = std::all_of(problems.begin(), problems.end(),
                                   [&](const config::Problem &each) { return flag_of(request, each) != nullptr; });
  return in_line ? usage_status(request) : kOurError;
}

int usage_status(const RunRequest &request) {
  return request.verb == "run" ? kOurError : kUsageError;
}

void refuse_wrong_wait(const RunRequest &request) {
  std::chrono::milliseconds ignored{};
  if (request.wait && !request.wait->empty()) {
    if (const std::string wrong = config::read_milliseconds(*request.wait, ignored); !wrong.empty()) {
      throw Refusal{usage_status(request), "--wait=" + config::shown(*request.wait) + ": " + wrong};
    }
  }
}

void refuse_wrong_tree(const RunRequest &request) {
  const std::string *tree = flag_value(request, kTreeKey);
  config::LimitMap ignored;
  if (tree != nullptr && !tree->empty()) {
    if (const std::string wrong = config::parse_limit(*tree, ignored); !wrong.empty()) {
      throw Refusal{usage_status(request), "--group-tree=" + config::shown(*tree) + ": " + wrong};
    }
  }
}

void set_flags(const RunRequest &request, EnvironmentBlock &environment) {
  for (const auto &[option, value] : request.flags) {
    if (option->key != kTreeKey) {
      set_by_flag(*option, option->key == "log" ? absolute_log(value) : value, environment);
    }
  }
  constexpr std::string_view kFile = "RATION_CONFIG";
  if (const std::string file = environment.value(kFile); !file.empty()) {
    environment.set(kFile, std::filesystem::absolute(file).string());
  }
}

config::Settings settings_of(const RunRequest &request, const EnvironmentBlock &environment,
                             std::vector<config::Problem> &problems) {
  config::SettingsContext from = config::own_context();
  const std::vector<const char *> entries = environment.pointers();
  from.environment = entries.data();
  from.at_start.clear();  // the command is started with exactly these entries
  if (!request.command.empty()) {
    from.program = identity_of(request.command, environment.value("PATH"));
  }
  config::Settings settings = config::read_settings(from, problems);
  if (events::shows(events::Level::debug)) {
    for (const std::string &sentence : settings.explained()) {
      events::explain(events::Level::debug, sentence);
    }
    events::explain(events::Level::debug, settings.limit_asked() ? "a limit holds" : "no limit is asked for");
  }
  return settings;
}

config::Settings apply_flags(const RunRequest &request, EnvironmentBlock &environment) {
  set_flags(request, environment);
  config::Settings settings = read_strictly(request, environment);
  const std::string *tree = flag_value(request, kTreeKey);
  if (tree == nullptr) {
    return settings;
  }
  const std::string number = new_tree_number();
  if (number.empty()) {
    throw Refusal{kOurError, std::string("no random number for --group-tree: ") + std::strerror(errno)};
  }
  const bool group_limit_too = flag_value(request, "group_limit") != nullptr;
  if (const std::string wrong = add_group_tree({*tree, group_limit_too}, number, environment); !wrong.empty()) {
    throw Refusal{usage_status(request), "--group-tree=" + config::shown(*tree) + ": " + wrong};
  }
  const config::Option *option = config::option_of_key(kTreeKey);
  set_by_flag(*option, environment.value(option->variable), environment);
  return read_strictly(request, environment);
}

void say_what_needs_a_log(const RunRequest &request, const config::Settings &settings) {
  if (!settings.log.empty() || settings.disabled) {
    return;
  }
  std::string which;
  const auto add = [&](std::string_view key) {
    const std::string *flag = flag_value(request, key);
    const config::Origin *origin = settings.origin_of(key);
    if (flag == nullptr && (origin == nullptr || !settings.summary_directory.empty())) {
      return;
    }
    which += which.empty() ? "" : " and ";
    which += flag == nullptr ? origin->written()
                             : std::string(config::option_of_key(key)->flag) + " " + config::shown(*flag);
  };
  if (settings.stacks != config::Stacks::kNone) {
    add("stacks");
  }
  const std::size_t one = which.size();
  if (settings.log_size) {
    add("log_size");
  }
  if (!which.empty()) {
    log_line(request.verb + ": " + which + (one != 0 && which.size() > one ? " have" : " has") +
             " no effect without --log");
  }
}

namespace {

// Logs which of our settings the command replaces (env RATION_LIMIT=...). Throws Refusal if a new value cannot be used,
// because the limit that would then apply is larger than the one asked for.
void say_what_is_replaced(const RunRequest &request, const CommandWalk &walk, EnvironmentBlock environment) {
  RunRequest replaced = request;
  bool is_replaced = false;
  for (const CommandWalk::Change &each : walk.changes) {
    if (!each.becomes.empty()) {
      environment.set(each.variable, each.becomes);
      std::erase_if(replaced.flags, [&](const auto &flag) { return flag.first->variable == each.variable; });
      log_line(request.verb + ": " + said(each));
      is_replaced = true;
    }
  }
  if (is_replaced) {
    (void)read_strictly(replaced, environment);
  }
}

}  // namespace

Program inspect(const RunRequest &request, const Library &library, const EnvironmentBlock &environment,
                const config::Settings &settings) {
  const std::string &name = request.command.front();
  Program program = inspect_program(name, environment.value("PATH"));
  refuse_program(request, program);
  events::explain(events::Level::debug, "the command is ", program.path,
                  program.runs == program.path ? "" : ", which is run by ",
                  program.runs == program.path ? "" : program.runs, program.for_shell ? ", for a shell" : "");
  find_old_library(library, program);
  if (settings.disabled) {
    return program;
  }
  const CommandWalk walk = walk_command(request.command, environment, library);
  auto loss = loss_of_limit(walk, library);
  if (!loss) {
    say_what_is_replaced(request, walk, environment);
  }
  if (!loss && program.obstacle != Obstacle::kNone && !only_asks(request.command)) {
    loss = not_intercepted(name, program);
  }
  if (!loss) {
    return program;
  }
  const std::string why = loss->name + " " + loss->reason;
  const std::string remedy = loss->remedy.empty() ? "" : "; " + loss->remedy;
  if (settings.limit_asked() && loss->is_certain) {
    throw Refusal{kOurError, why + "; its limit could not be enforced, so nothing was started" + remedy};
  }
  log_line(request.verb + ": " + why +
           (loss->is_certain ? "; started without Ration" : "; Ration may be missing there") + remedy);
  return program;
}

void preload(const Library &library, const Program &program, EnvironmentBlock &environment) {
  // Such programs' dynamic linkers warn of a library that they cannot load, or stop.
  if (program.obstacle == Obstacle::kMusl || program.obstacle == Obstacle::kForeign ||
      program.obstacle == Obstacle::kOldLibrary) {
    return;
  }
  const std::string order = preload_order(environment.value("LD_PRELOAD"), library.preload, program.elf.needed);
  events::explain(events::Level::debug, "the command gets LD_PRELOAD=", order);
  environment.set("LD_PRELOAD", order);
}

void simulate(const RunRequest &request, const Library &library, const std::string &folder,
              EnvironmentBlock &environment) {
  if (const std::string wrong = error_in_simulation(request.simulate); !wrong.empty()) {
    throw Refusal{kOurError, wrong};
  }
  require_readable(library.simulator + "/libcuda.so.1");
  environment.set("LD_LIBRARY_PATH", prepend_folder(environment.value("LD_LIBRARY_PATH"), library.simulator));
  environment.set("SIMCUDA_DEVICES", std::get<SimulatedDevices>(parse_simulated_devices(*request.simulate)).text);
  environment.set("SIMCUDA_NOTES", folder.empty() ? "" : make_notes_folder(folder));
  // The context size of a small card. The simulated driver's default is an H100's; few such contexts fit into 8 GiB.
  if (environment.value("SIMCUDA_CONTEXT_BYTES").empty() && environment.value("SIMCUDA_COSTS").empty()) {
    environment.set("SIMCUDA_CONTEXT_BYTES", "256MiB");
  }
  if (environment.value("SIMCUDA_MACHINE").empty()) {
    if (folder.empty()) {
      throw Refusal{kOurError,
                    "no folder for the simulated machine: neither $TMPDIR, /tmp nor /dev/shm can be written"};
    }
    environment.set("SIMCUDA_MACHINE", folder + "/machine");
  }
}

config::Settings refuse_wrong_line(const RunRequest &request, EnvironmentBlock environment) {
  config::Settings settings = apply_flags(request, environment);
  const Program program = inspect_program(request.command.front(), environment.value("PATH"));
  refuse_program(request, program);
  const Library library = find_library();
  const auto loss =
      settings.disabled ? std::nullopt : loss_of_limit(walk_command(request.command, environment, library), library);
  if (loss && loss->is_certain) {
    throw Refusal{kOurError, loss->name + " " + loss->reason + ", so no limit and no refusal would reach it" +
                                 (loss->remedy.empty() ? "" : "; " + loss->remedy)};
  }
  if (flag_value(request, "log") != nullptr) {
    (void)check_log_target(request, settings, program);  // the runs report one that a variable names
  }
  return settings;
}

}  // namespace ration::cli
