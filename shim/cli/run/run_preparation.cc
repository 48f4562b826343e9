#include "cli/run/run_preparation.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "cli/exit_status.h"
#include "cli/log.h"
#include "cli/run/group_tree.h"
#include "cli/run/preload_order.h"
#include "cli/run/simulated_machine.h"
#include "config/flag_marks.h"
#include "config/options.h"
#include "config/surroundings.h"
#include "config/wording.h"

namespace ration::cli {

namespace {

constexpr std::string_view kTreeKey = "group_tree";  // its flag carries a limit, its variable the numbers too
constexpr std::string_view kMarks = "RATION_FLAGS";

std::string from_here(const std::string &path) {
  return path.front() == '/' ? path : std::filesystem::current_path().string() + "/" + path;
}

// A path of an option means the folder that the option was given in, wherever the program goes before it writes.
std::string log_from_here(const std::string &path) {
  if (path.front() == '/') {
    return path;
  }
  std::string here = std::filesystem::current_path().string();
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

// As the process will see itself: its file behind every link, its words as the kernel puts them for a script.
config::ProgramIdentity identity_of(const std::vector<std::string> &command, const char *search_path) {
  const Program program = inspect_program(command.front(), search_path == nullptr ? "" : search_path);
  std::vector<std::string> words = program.words.empty() ? std::vector{command.front()} : program.words;
  words.insert(words.end(), command.begin() + 1, command.end());
  std::error_code unknown;
  const std::filesystem::path file = std::filesystem::canonical(program.runs, unknown);
  return {unknown ? program.runs : file.string(), config::joined_words(words)};
}

// Every mistake is one line; any one is a Refusal.
config::Settings read_strictly(const RunRequest &request, const EnvironmentBlock &environment) {
  std::vector<config::Problem> problems;
  config::Settings settings = settings_of(request, environment, problems);
  std::vector<std::string> lines;
  for (const config::Problem &problem : problems) {
    if (!problem.fatal_for_cli) {
      continue;  // the library says it, in every process that it concerns
    }
    const std::string *flag =
        problem.in_variable && problem.key != kTreeKey ? flag_value(request, problem.key) : nullptr;
    const std::string written =
        flag == nullptr ? problem.written
                        : std::string(config::option_of_key(problem.key)->flag) + " " + config::shown(*flag);
    lines.push_back(written + ": " + problem.sentence);
  }
  for (const std::string &line : lines) {
    log_line("run: " + line);
  }
  if (!lines.empty()) {
    throw Refusal{kOurError, {}};
  }
  return settings;
}

// `value` by itself: it may lie in what is changed.
void set_by_flag(const config::Option &option, const std::string &value, EnvironmentBlock &environment) {
  const char *marks = environment.find(kMarks);
  environment.set(kMarks, config::mark_flag(marks == nullptr ? "" : marks, option.key, value));
  environment.set(option.variable, value);
}

}  // namespace

Library find_library() {
  // Where this program was started from, not where it was built: the tree can be moved as a whole.
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe");
  const std::filesystem::path lib = self.parent_path().parent_path() / "lib";
  for (const char *name : {"libration.so", "libration-core.so"}) {
    if (access((lib / name).c_str(), R_OK) != 0) {
      throw Refusal{kOurError, (lib / name).string() + " is missing or cannot be read; is the installation whole?"};
    }
  }
  Library library{(lib / "libration.so").string(), (lib / "ration" / "sim").string()};
  if (library.preload.find_first_of(" :") != std::string::npos) {
    throw Refusal{kOurError,
                  library.preload + ": LD_PRELOAD cannot name a path with a blank or a colon; move the installation"};
  }
  return library;
}

void set_flags(const RunRequest &request, EnvironmentBlock &environment) {
  for (const auto &[option, value] : request.flags) {
    if (option->key != kTreeKey) {
      set_by_flag(*option, option->key == "log" ? log_from_here(value) : value, environment);
    }
  }
  constexpr std::string_view kFile = "RATION_CONFIG";
  if (const char *file = environment.find(kFile); file != nullptr && *file != '\0') {
    environment.set(kFile, from_here(file));
  }
}

config::Settings settings_of(const RunRequest &request, const EnvironmentBlock &environment,
                             std::vector<config::Problem> &problems) {
  config::Surroundings from = config::own_surroundings();
  const std::vector<const char *> entries = environment.pointers();
  from.environment = entries.data();
  if (!request.command.empty()) {
    from.program = identity_of(request.command, environment.find("PATH"));
  }
  return config::read_settings(from, problems);
}

config::Settings apply_flags(const RunRequest &request, EnvironmentBlock &environment) {
  set_flags(request, environment);
  config::Settings settings = read_strictly(request, environment);
  const std::string *tree = flag_value(request, kTreeKey);
  if (tree == nullptr) {
    return settings;
  }
  const std::string number = fresh_tree_number();
  if (number.empty()) {
    throw Refusal{kOurError, std::string("no random number for --group-tree: ") + std::strerror(errno)};
  }
  const bool limit_apart = flag_value(request, "group_limit") != nullptr;
  if (const std::string wrong = plant_tree({*tree, limit_apart}, number, environment); !wrong.empty()) {
    throw Refusal{kOurError, "--group-tree=" + config::shown(*tree) + ": " + wrong};
  }
  const config::Option *option = config::option_of_key(kTreeKey);
  set_by_flag(*option, environment.find(option->variable), environment);
  return read_strictly(request, environment);
}

Program inspect(const RunRequest &request, const EnvironmentBlock &environment, const config::Settings &settings) {
  const std::string &name = request.command.front();
  const char *path = environment.find("PATH");
  Program program = inspect_program(name, path == nullptr ? "" : path);
  if (program.exit_status != 0) {
    throw Refusal{program.exit_status, program.reason};
  }
  if (program.obstacle == Obstacle::kNone || settings.disabled) {
    return program;
  }
  const std::string which = program.runs == program.path ? name : name + " (" + program.runs + ")";
  const std::string why = which + " cannot be intercepted: " + program.reason;
  if (settings.limit_asked()) {
    throw Refusal{kOurError, why + "; its limit could not hold, so nothing was started"};
  }
  log_line("run: " + why + "; started without Ration");
  return program;
}

void preload(const Library &library, const Program &program, EnvironmentBlock &environment) {
  // Their dynamic linkers complain of a library that they cannot load, or stop.
  if (program.obstacle == Obstacle::kMusl || program.obstacle == Obstacle::kForeign) {
    return;
  }
  const char *present = environment.find("LD_PRELOAD");
  environment.set("LD_PRELOAD", preload_order(present == nullptr ? "" : present, library.preload, program.elf.needed));
}

void simulate(const std::string &devices, const Library &library, const std::string &folder,
              EnvironmentBlock &environment) {
  const auto parsed = parse_simulated_devices(devices);
  if (const std::string *wrong = std::get_if<std::string>(&parsed)) {
    throw Refusal{kOurError, "--sim " + config::shown(devices) + ": " + *wrong};
  }
  if (access((library.simulator + "/libcuda.so.1").c_str(), R_OK) != 0) {
    throw Refusal{kOurError,
                  library.simulator + "/libcuda.so.1 is missing or cannot be read; is the installation whole?"};
  }
  const char *present = environment.find("LD_LIBRARY_PATH");
  environment.set("LD_LIBRARY_PATH", prepend_folder(present == nullptr ? "" : present, library.simulator));
  environment.set("SIMCUDA_DEVICES", std::get<SimulatedDevices>(parsed).text);
  if (const char *machine = environment.find("SIMCUDA_MACHINE"); machine == nullptr || *machine == '\0') {
    if (folder.empty()) {
      throw Refusal{kOurError,
                    "no folder for the simulated machine: neither $TMPDIR, /tmp nor /dev/shm can be written"};
    }
    environment.set("SIMCUDA_MACHINE", folder + "/machine");
  }
}

}  // namespace ration::cli
