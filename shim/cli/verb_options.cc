#include "cli/verb_options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>

#include "cli/exit_status.h"
#include "cli/log.h"
#include "cli/run/command_line.h"
#include "config/options.h"

namespace ration::cli {
namespace {

constexpr const char *kExamples =
    "Examples:\n"
    "  ration run --limit 40% --log run.jsonl -- ./train     limit a program to 40% of each GPU\n"
    "  ration run --sim 2x8GiB -- ./train                    without a GPU: on two simulated ones\n"
    "  ration ps                                             memory of each process (ration top: live)\n"
    "  ration run --help                                     all options of a verb\n"
    "  ration env                                            the settings in force and their sources\n"
    "  ration config --check ration.json                     the mistakes in a settings file\n"
    "  ration doctor --coverage                              what Ration does about each driver function";

constexpr const char *kRunFooter =
    "Options after the command belong to the command. Every setting without an option here has a variable (ration env\n"
    "lists them); an option overrides its variable.\n\n"
    "Examples:\n"
    "  ration run --limit 40% -- ./train --epochs 3         at most 40% of each GPU\n"
    "  ration run --limit 0=8GiB,GPU-1f2e=50% -- ./train    a limit for each GPU\n"
    "  ration run --reserve 2GiB -- ./render                leave 2 GiB to the desktop\n"
    "  ration run --group lab --group-limit 50% -- ./train  half of each GPU for all members of the group together\n"
    "  ration run --group-tree=50% -- ./train.sh            half of each GPU for all that the script starts together\n"
    "  ration run --log %n-%p.jsonl -- python3 train.py     one JSON line for every allocation\n"
    "  ration run --sim 2x8GiB --limit 25% -- ./train       on two simulated GPUs\n\n"
    "A command cannot be intercepted if it is statically linked, setuid, setgid, has file capabilities, or was built\n"
    "for musl or another machine. Ration reports that, and does not start it if a limit or a group was set.\n\n"
    "Exit status: the command's; 128+N when signal N ended it; 125 a bad option or setting, or a limit that cannot be\n"
    "enforced (nothing was started); 126 not executable; 127 not found.";

constexpr const char *kPsFooter =
    "RESERVED is what the device holds for the process, and what counts against limits; USED is what the program\n"
    "holds of it; LIMIT is the process's own; PEAK is the most that was reserved; FAILS counts refused allocations.\n"
    "GRANULES is the number of handles of physical memory in its pools, STITCHED that of its blocks for which\n"
    "granules were mapped side by side; a narrow terminal leaves both out. The second table shows groups and what\n"
    "their members share. All processes with the same state folder (RATION_STATE_DIR) are shown, inside and outside\n"
    "of containers. No process is disturbed.\n\n"
    "Examples:\n"
    "  ration ps\n"
    "  ration ps --json | jq '.processes[] | {pid, reserved}'\n"
    "  ration ps --textfile /var/lib/node_exporter/ration.prom     for node_exporter's textfile collector\n\n"
    "Exit status: 0; 1 if something could not be read (the rest is shown); 2 a bad option; 125 the output could not "
    "be\n"
    "written.";

constexpr const char *kTopFooter =
    "Keys: r u p a g sort by reserved, used, pid, age, group; space pauses; q quits.\n"
    "If stdout is no terminal, or one of an unknown type, the tables are printed once, as with --once.\n\n"
    "Examples:\n"
    "  ration top\n"
    "  ration top --json --interval 5 >>usage.jsonl\n\n"
    "Exit status: 0; 1 if something could not be read; 2 a bad option. A signal ends it after the terminal is\n"
    "restored.";

constexpr const char *kDoctorFooter =
    "LOG, written with --log: which functions its program asked the driver for that Ration does not know, or not in\n"
    "that version, what that means, and what can be done about it. A process that was killed has not written them.\n"
    "--coverage prints a line for each driver export that concerns memory: the CUDA version that introduced it, the\n"
    "action in our catalogue of the driver (POOL, COUNT, VIRT, XLATE, WATCH, WRAP), what Ration does, and its tests.\n"
    "hooked: Ration handles it. passed on: it goes to the driver, because it cannot exceed the limit. GAP: it can "
    "exceed\n"
    "the limit, or its answer is wrong.\n\n"
    "Examples:\n"
    "  ration doctor --coverage | grep GAP\n"
    "  ration doctor --coverage --json | jq '.rows[] | select(.standing == \"gap\") | .export'\n"
    "  ration run --log run.jsonl -- ./train && ration doctor run.jsonl\n\n"
    "Exit status: 0; 1 the log does not say; 2 a bad option, or no whole log; 125 the output could not be written.";

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

void describe_simulation(CLI::App &verb, RunRequest &request) {
  verb.add_option_function<std::string>(
          "--sim", [&request](const std::string &value) { request.simulate = value; },
          "run on simulated GPUs, without a real one: 8GiB, 2x8GiB or 8GiB,4GiB")
      ->type_name("[Nx]SIZE");
}

void describe_run(CLI::App &verb, RunRequest &request) {
  describe_flags(verb, request.flags);
  describe_simulation(verb, request);
  verb.formatter(std::make_shared<RunFormatter>());
  verb.footer(kRunFooter);
}

void describe_env(CLI::App &verb, EnvRequest &request) {
  verb.add_flag("--json", request.json, "one JSON document, sizes in bytes");
  verb.add_flag("--answer-probe", request.answers_probe, "")->group("");  // not for people: driver_probe.h
  describe_flags(verb, request.run.flags);
  describe_simulation(verb, request.run);
  verb.remove_option(verb.get_option("--group-tree"));  // creates a tree; it sets nothing that is shown
  verb.add_option("command", request.run.command, "the command that the rules in settings files are matched against");
  verb.footer(
      "Variables that a framework reads itself are not applied in a process that has loaded the framework.\n"
      "Below the settings: the driver's devices, and what a pool on each is made of. A first granule is tried when a\n"
      "program allocates; where that fails, slabs serve the device, and one line says why.\n\n"
      "Examples:\n  ration env\n  RATION_LIMIT=40% ration env --json\n"
      "  ration env --mode direct -- python3 serve.py      what `ration run` would use with the same arguments\n\n"
      "Exit status: 0; 2 a bad option; 125 a setting cannot be used as written.");
}

void describe_config(CLI::App &verb, ConfigRequest &request) {
  verb.add_option("--check", request.files, "print the mistakes in these files, with their lines")->type_name("FILE");
  verb.footer(
      "Without --check: the files that settings are read from, the highest precedence first.\n\n"
      "Examples:\n  ration config\n  ration config --check ration.json\n\n"
      "Exit status: 0; 2 a bad option; 125 a file cannot be used as written.");
}

void describe_ps(CLI::App &verb, PsRequest &request) {
  CLI::Option *json = verb.add_flag("--json", request.json, "one JSON object, sizes in bytes");
  CLI::Option *prometheus = verb.add_flag("--prometheus", request.prometheus, "metrics in Prometheus' text format");
  CLI::Option *file =
      verb.add_option("--textfile", request.textfile, "replace FILE atomically by these metrics")->type_name("FILE");
  json->excludes(prometheus)->excludes(file);
  prometheus->excludes(file);
  verb.footer(kPsFooter);
}

void describe_top(CLI::App &verb, TopRequest &request) {
  verb.add_flag("--once", request.once, "print the tables once, as `ration ps`");
  verb.add_flag("--json", request.json, "a stream: one JSON object a line, sizes in bytes");
  verb.add_option("--interval", request.interval_seconds, "time between two snapshots (default 1)")
      ->type_name("SECONDS");
  verb.footer(kTopFooter);
}

void describe_doctor(CLI::App &verb, DoctorRequest &request) {
  verb.add_flag("--coverage", request.coverage, "print what Ration does about each driver function");
  verb.add_flag("--json", request.json, "one JSON object");
  verb.add_option("LOG", request.log, "a log: which functions its program asked for that Ration does not know");
  verb.footer(kDoctorFooter);
}

}  // namespace

int usage_error(const std::string &line, int status) {
  log_line(line);  // one line, where CLI11 splits a message into several
  return status;
}

std::variant<Request, int> parse_arguments(std::vector<std::string> words) {
  const bool help = !words.empty() && words[0] == "help";
  if (help) {  // `help VERB` is `VERB --help`
    words.erase(words.begin());
    words.resize(std::min(words.size(), std::size_t{1}));
    words.emplace_back("--help");
  }
  const int status = !words.empty() && words[0] == "run" ? kOurError : kUsageError;
  CLI::App app("A limit of GPU memory for every CUDA process", "ration");
  app.set_version_flag("--version", "ration " RATION_VERSION);
  app.footer(kExamples);
  app.require_subcommand(0, 1);
  std::tuple<RunRequest, PsRequest, TopRequest, DoctorRequest, EnvRequest, ConfigRequest> requests;
  std::optional<Request> parsed;
  const auto add = [&](const char *name, const char *help, auto describe, auto &request) {
    CLI::App *verb = app.add_subcommand(name, help);
    describe(*verb, request);
    verb->callback([&parsed, &request] { parsed = std::move(request); });
  };
  auto &[run, ps, top, doctor, env, config] = requests;
  add("run", "run a command under a limit", describe_run, run);
  add("ps", "print how much device memory each process holds", describe_ps, ps);
  add("top", "show how much device memory each process holds, live", describe_top, top);
  add("doctor", "print what Ration covers, or what a program asked for beyond that", describe_doctor, doctor);
  add("env", "print the settings in force and their sources", describe_env, env);
  add("config", "list the settings files, or check one", describe_config, config);

  const auto verbs = app.get_subcommands([](const CLI::App *) { return true; });
  const auto is_named = [&](const CLI::App *verb) { return verb->get_name() == words[0]; };
  if (help && words.size() > 1 && std::none_of(verbs.begin(), verbs.end(), is_named)) {
    return usage_error("help: unknown verb '" + words[0] + "'", status);
  }
  std::vector<std::string> own = words;
  if (!words.empty() && words[0] == "run") {
    auto split = split_line({words.begin() + 1, words.end()});
    if (const std::string *wrong = std::get_if<std::string>(&split)) {
      return usage_error("run: " + *wrong, status);
    }
    auto &[options, command] = std::get<SplitLine>(split);
    own = std::move(options);
    own.insert(own.begin(), "run");
    run.command = std::move(command);
  }
  try {
    std::reverse(own.begin(), own.end());  // CLI11 reads them from the back
    app.parse(std::move(own));
  } catch (const CLI::Success &request) {  // --help and --version
    return app.exit(request);
  } catch (const CLI::ParseError &error) {
    return usage_error(error.what(), status);
  }
  if (parsed) {
    return *std::move(parsed);
  }
  std::cerr << app.help();
  return status;
}

}  // namespace ration::cli
