#include "cli/verb_options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <memory>
#include <utility>

#include "cli/exit_status.h"
#include "cli/log.h"
#include "cli/run/command_line.h"
#include "config/options.h"

namespace ration::cli {
namespace {

constexpr const char *kExamples =
    "Examples:\n"
    "  ration run --limit 40% --log run.jsonl -- ./train     hold a program to 40% of each GPU\n"
    "  ration run --sim 2x8GiB -- ./train                    without a GPU: two simulated ones\n"
    "  ration ps                                             who holds how much (ration top: live)\n"
    "  ration run --help                                     all options of a verb\n"
    "  ration env                                            which settings hold, and where they come from\n"
    "  ration config --check ration.json                     what is wrong with a file of settings\n"
    "  ration doctor --coverage                              what Ration does about each function of the driver";

constexpr const char *kRunFooter =
    "What follows the command belongs to the command. Every setting that has no option here is a variable (ration env\n"
    "lists them); an option goes before its variable.\n\n"
    "Examples:\n"
    "  ration run --limit 40% -- ./train --epochs 3         at most 40% of each GPU\n"
    "  ration run --limit 0=8GiB,GPU-1f2e=50% -- ./train    a limit for each GPU\n"
    "  ration run --reserve 2GiB -- ./render                leave 2 GiB to the desktop\n"
    "  ration run --group lab --group-limit 50% -- ./train  half of each GPU for all members of the group together\n"
    "  ration run --group-tree=50% -- ./train.sh            half of each GPU for all that the script starts together\n"
    "  ration run --log %n-%p.jsonl -- python3 train.py     one JSON line for every allocation\n"
    "  ration run --sim 2x8GiB --limit 25% -- ./train       on two simulated GPUs\n\n"
    "A command that is statically linked, setuid, setgid or privileged by its file, or built for musl or another "
    "machine\n"
    "cannot be intercepted. That is said before it starts; where a limit or a group was asked for, it is not "
    "started.\n\n"
    "Exit status: the command's; 128+N when signal N ended it; 125 a bad option or setting, or a limit that could not\n"
    "hold (nothing was started); 126 not executable; 127 not found.";

constexpr const char *kPsFooter =
    "RESERVED is what the device holds for the process, and what counts; USED what the program holds of it; LIMIT the\n"
    "process's own. The second table shows the groups and what they share. Everyone whose books lie in the same "
    "folder\n"
    "(RATION_STATE_DIR) is seen, also from inside and outside of containers; no process is touched.\n\n"
    "Examples:\n"
    "  ration ps\n"
    "  ration ps --json | jq '.processes[] | {pid, reserved}'\n"
    "  ration ps --textfile /var/lib/node_exporter/ration.prom     for node_exporter's textfile collector\n\n"
    "Exit status: 0; 1 where something could not be read (the rest is shown); 125 a bad option, or nothing could be\n"
    "written.";

constexpr const char *kTopFooter =
    "Keys: r u p a g sort by reserved, used, pid, age, group; space pauses; q quits.\n"
    "Where stdout is no terminal, or one of an unknown type, it is shown once, as with --once.\n\n"
    "Examples:\n"
    "  ration top\n"
    "  ration top --json --interval 5 >>usage.jsonl\n\n"
    "Exit status: 0; 1 where something could not be read; 125 a bad option; a signal that ends it does so after the\n"
    "terminal was given back.";

constexpr const char *kDoctorFooter =
    "--coverage prints a line for each export of the driver that has to do with memory: the CUDA version that it came "
    "with,\n"
    "what our catalogue of the driver asks for (POOL, COUNT, VIRT, XLATE, WATCH, WRAP), what Ration does, which test "
    "shows it.\n"
    "hooked: met by Ration. passed on: the driver's alone, because nothing escapes the limit by it. GAP: something "
    "does,\n"
    "or is answered as it should not be.\n\n"
    "Examples:\n"
    "  ration doctor --coverage | grep GAP\n"
    "  ration doctor --coverage --json | jq '.rows[] | select(.standing == \"gap\") | .export'\n\n"
    "Exit status: 0; 125 a bad option, or nothing could be written.";

class RunFormatter : public CLI::Formatter {
 public:
  std::string make_usage(const CLI::App *, std::string) const override {
    return "Usage: ration run [OPTIONS] [--] COMMAND [ARGUMENTS...]\n";
  }
};

void describe_flags(CLI::App &verb, Flags &flags) {
  for (const config::Option &option : config::options()) {
    if (option.flag.empty()) {
      continue;
    }
    const CLI::callback_t keep = [&flags, &option](const CLI::results_t &values) {
      flags.emplace_back(&option, values.front());
      return true;
    };
    CLI::Option *described = verb.add_option(std::string(option.flag), keep, std::string(option.help));
    if (option.key == "group_tree") {
      described->expected(0, 1)->type_name("[=LIMIT]");
      continue;
    }
    std::string values(option.values);
    std::replace(values.begin(), values.end(), ' ', '|');
    described->type_name(values);
  }
}

void describe_run(CLI::App &verb, RunRequest &request) {
  describe_flags(verb, request.flags);
  verb.add_option_function<std::string>(
          "--sim", [&request](const std::string &value) { request.simulate = value; },
          "run on simulated GPUs, without a real one: 8GiB, 2x8GiB or 8GiB,4GiB")
      ->type_name("[Nx]SIZE");
  verb.formatter(std::make_shared<RunFormatter>());
  verb.footer(kRunFooter);
}

void describe_env(CLI::App &verb, EnvRequest &request) {
  verb.add_flag("--json", request.json, "one JSON document, sizes in bytes");
  describe_flags(verb, request.run.flags);
  verb.remove_option(verb.get_option("--group-tree"));  // makes a tree, which shows nothing
  verb.add_option("command", request.run.command, "what the rules of files for some programs are applied to");
  verb.footer(
      "Of what a framework reads itself nothing is applied in a process that has it loaded.\n\n"
      "Examples:\n  ration env\n  RATION_LIMIT=40% ration env --json\n"
      "  ration env --mode direct -- python3 serve.py      what `ration run` with the same words would use\n\n"
      "Exit status: 0, or 125 where a setting cannot be used as it is written.");
}

void describe_config(CLI::App &verb, ConfigRequest &request) {
  verb.add_option("--check", request.files, "say what is wrong with these files, and which line it is in")
      ->type_name("FILE");
  verb.footer(
      "Without --check: the files that settings are read from, the strongest first.\n\n"
      "Examples:\n  ration config\n  ration config --check ration.json\n\n"
      "Exit status: 0, or 125 where a file cannot be used as it is written.");
}

void describe_ps(CLI::App &verb, PsRequest &request) {
  CLI::Option *json = verb.add_flag("--json", request.json, "one JSON object, sizes in bytes");
  CLI::Option *prometheus = verb.add_flag("--prometheus", request.prometheus, "as metrics, in Prometheus' text format");
  CLI::Option *file =
      verb.add_option("--textfile", request.textfile, "these metrics, put into FILE as a whole")->type_name("FILE");
  json->excludes(prometheus)->excludes(file);
  prometheus->excludes(file);
  verb.footer(kPsFooter);
}

void describe_top(CLI::App &verb, TopRequest &request) {
  verb.add_flag("--once", request.once, "show it once, as `ration ps` does");
  verb.add_flag("--json", request.json, "a stream: one JSON object a line, sizes in bytes");
  verb.add_option("--interval", request.interval_seconds, "between two looks (default 1)")->type_name("SECONDS");
  verb.footer(kTopFooter);
}

void describe_doctor(CLI::App &verb, DoctorRequest &request) {
  verb.add_flag("--coverage", request.coverage, "what Ration does about each function of the driver");
  verb.add_flag("--json", request.json, "one JSON object");
  verb.footer(kDoctorFooter);
}

struct Requests {
  RunRequest run;
  EnvRequest env;
  ConfigRequest config;
  PsRequest ps;
  TopRequest top;
  DoctorRequest doctor;
};

}  // namespace

int complain(std::string line) {
  // CLI11 breaks some of its sentences into several lines.
  for (char &c : line) {
    c = c == '\n' ? ' ' : c;
  }
  log_line(line);
  return kOurError;
}

std::variant<Request, int> read_words(const std::vector<std::string> &words) {
  CLI::App app("A ration of GPU memory for every CUDA process", "ration");
  app.set_version_flag("--version", "ration " RATION_VERSION);
  app.footer(kExamples);
  app.require_subcommand(0, 1);
  Requests requests;
  CLI::App *run = app.add_subcommand("run", "run a command under its ration");
  CLI::App *ps = app.add_subcommand("ps", "print who holds how much device memory");
  CLI::App *top = app.add_subcommand("top", "show who holds how much device memory, live");
  CLI::App *doctor = app.add_subcommand("doctor", "say what Ration covers");
  CLI::App *env = app.add_subcommand("env", "print the settings that hold here, and their sources");
  CLI::App *config = app.add_subcommand("config", "list the files of settings, or check one");
  describe_run(*run, requests.run);
  describe_ps(*ps, requests.ps);
  describe_top(*top, requests.top);
  describe_doctor(*doctor, requests.doctor);
  describe_env(*env, requests.env);
  describe_config(*config, requests.config);

  std::vector<std::string> own = words;
  if (!words.empty() && words[0] == "run") {
    const auto split = split_line({words.begin() + 1, words.end()});
    if (const std::string *wrong = std::get_if<std::string>(&split)) {
      return complain("run: " + *wrong);
    }
    own = std::get<SplitLine>(split).own;
    own.insert(own.begin(), "run");
    requests.run.command = std::get<SplitLine>(split).command;
  }
  try {
    std::reverse(own.begin(), own.end());  // CLI11 takes them from the back
    app.parse(std::move(own));
  } catch (const CLI::Success &request) {  // --help and --version
    return app.exit(request);
  } catch (const CLI::ParseError &error) {
    return complain(error.what());
  }
  if (*run) {
    return Request(std::move(requests.run));
  }
  if (*ps) {
    return Request(std::move(requests.ps));
  }
  if (*top) {
    return Request(requests.top);
  }
  if (*doctor) {
    return Request(requests.doctor);
  }
  if (*env) {
    return Request(std::move(requests.env));
  }
  if (*config) {
    return Request(std::move(requests.config));
  }
  std::cerr << app.help();
  return kOurError;
}

}  // namespace ration::cli
