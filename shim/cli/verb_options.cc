#include "cli/verb_options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>

#include "cli/base/exit_status.h"
#include "cli/base/log.h"
#include "cli/help_formatter.h"
#include "cli/launch/command_line.h"
#include "cli/manual/description.h"
#include "cli/wrong_words.h"
#include "config/options.h"
#include "config/values/option_parsers.h"
#include "config/values/quotes.h"
#include "events/diagnostics.h"

namespace ration::cli {
namespace {

std::string help_text_of(std::string_view name) {
  static const std::map<std::string_view, std::string_view> kTexts = {
#include "help_texts.inc"
  };
  return std::string(kTexts.at(name));
}

constexpr const char *kHelpOfHelp =
    "print the help of a verb\n"
    "Usage: ration help [VERB]\n\n"
    "Without VERB: the verbs, and examples. `ration VERB --help` prints the same.\n";
constexpr const char *kLogFile = "FILE";
constexpr const char *kLogWithoutName = "%n-%p.jsonl";
constexpr const char *kGroupingWords = "caller|library|thread|size";

constexpr const char *kCommandArguments = "[--] COMMAND [ARGUMENTS...]";

// The options that a verb has in addition to those of `ration run`; nullopt for verbs that do not run commands.
std::optional<VerbFlags> flags_of(const std::string &verb) {
  if (verb == "find-min") {
    return VerbFlags{{"--tolerance", "--timeout"}, {"--json", "--force"}, "find-min"};
  }
  if (verb == "find-faults") {
    return VerbFlags{{"--first", "--timeout"}, {"--json"}, "find-faults"};
  }
  if (verb == "env") {
    VerbFlags flags = flags_of_run();
    flags.with_value.emplace_back("--check");
    flags.alone.insert(flags.alone.end(), {"--json", "--files"});
    flags.verb = "env";
    return flags;
  }
  return verb == "run" ? std::optional(flags_of_run()) : std::nullopt;
}

// The options that `ration run --help` shows; --help-all shows the others too.
const std::vector<std::string> kFirstOfRun = {"--limit", "--reserve", "--group", "--group-limit", "--wait",
                                              "--log",   "--stacks",  "--sim",   "--quiet",       "--help"};

std::string heading_of(std::string_view key) {
  constexpr std::string_view kOfLimits[] = {"limit", "container_limit", "mode", "reserve", "show_limit"};
  constexpr std::string_view kOfLogs[] = {"log", "log_size", "stacks"};
  const auto is_among = [key](const auto &keys) {
    return std::find(std::begin(keys), std::end(keys), key) != std::end(keys);
  };
  return is_among(kOfLimits) ? "Limits" : is_among(kOfLogs) ? "Logs" : key == "fail" ? "Tests" : "Groups";
}

constexpr const char *kIntervalRule = "it must be a time from 0.1 to 86400 seconds; write, for example, 5 or 500ms";

template <typename Number>
Number number_of(
    const char *option, const std::string &given, const char *rule,
    bool (*is_allowed)(Number) = [](Number) { return true; }) {
  Number number{};
  if (!CLI::detail::lexical_cast(given, number) || !is_allowed(number)) {
    throw CLI::ParseError(std::string(option) + " " + config::shown(given) + ": " + rule,
                          CLI::ExitCodes::ConversionError);
  }
  return number;
}

double seconds_of(const char *option, const std::string &given) {
  std::chrono::milliseconds read{};
  if (!config::read_milliseconds(given, read).empty() || read < std::chrono::milliseconds(100) ||
      read > std::chrono::hours(24)) {
    throw CLI::ParseError(std::string(option) + " " + config::shown(given) + ": " + kIntervalRule,
                          CLI::ExitCodes::ConversionError);
  }
  return std::chrono::duration<double>(read).count();
}

// Without this check, CLI11 would accept --flag=3.
CLI::Option *add_flag(CLI::App &verb, const char *name, bool &value, const char *help) {
  return verb.add_flag(name, value, help)->check([](const std::string &given) {
    return given == "true" ? "" : "takes no value";
  });
}

void describe_flags(CLI::App &verb, Flags &flags) {
  for (const config::Option &option : config::options()) {
    if (option.flag.empty()) {
      continue;
    }
    const bool is_log = option.key == "log";
    const CLI::callback_t keep = [&flags, &option, is_log](const CLI::results_t &values) {
      flags.emplace_back(&option, is_log && values.front().empty() ? kLogWithoutName : values.front());
      return true;
    };
    CLI::Option *described = verb.add_option(std::string(option.flag), keep, std::string(option.help));
    described->group(heading_of(option.key));
    if (option.key == "group_tree") {
      described->expected(0, 1)->type_name("[=LIMIT]");
      continue;
    }
    if (is_log) {
      described->expected(0, 1)->type_name("[FILE]");
      continue;
    }
    std::string values(option.values);
    std::replace(values.begin(), values.end(), ' ', '|');
    described->type_name(values);
  }
}

void describe_force(CLI::App &verb, RunRequest &request) {
  add_flag(verb, "--force", request.force, "let --log overwrite a log that is there")
      ->needs(verb.get_option("--log"))
      ->group("Logs");
}

void describe_simulation(CLI::App &verb, RunRequest &request) {
  verb.add_option_function<std::string>(
          "--sim", [&request](const std::string &value) { request.simulate = value; },
          "simulate GPUs: 8GiB, 2x8GiB or 8GiB,4GiB; programs that use NVIDIA's runtime (libcudart) need a real one")
      ->type_name("[Nx]SIZE")
      ->group("Tests");
}

void describe_options_of_run(CLI::App &verb, RunRequest &request) {
  describe_flags(verb, request.flags);
  describe_force(verb, request);
  add_flag(verb, "--embed-names", request.embed_names,
           "write the names of functions into the log at the end; needs --log and --stacks")
      ->group("Logs");
  describe_simulation(verb, request);
  const CLI::callback_t keep = [&request](const CLI::results_t &values) {
    request.wait = values.front();
    return true;
  };
  verb.add_option(
          "--wait", keep,
          "start when the guarantee, or the limit, fits into the group and the device: first come, first served")
      ->expected(0, 1)
      ->type_name("[=DURATION]")
      ->group("Groups");
  add_flag(verb, "-q,--quiet", request.quiet, "no summary at the end; errors are still printed");
  add_flag(verb, "-v,--verbose", request.verbose,
           "print what was decided and why; also RATION_DIAGNOSTICS=debug, unless set");
  verb.add_option("--summary", request.summary, "write the final summary to FILE, as JSON; json: to stderr")
      ->type_name("FILE|json");
}

void describe_run(CLI::App &verb, RunRequest &request) {
  describe_options_of_run(verb, request);
  verb.add_flag_callback(
          "--json", [&request] { request.summary = "json"; }, "print the final summary as JSON, on stderr")
      ->excludes(verb.get_option("--summary"));
  verb.formatter(std::make_shared<HelpFormatter>(kCommandArguments, kFirstOfRun));
}

void describe_timeout(CLI::App &verb, std::optional<std::string> &timeout) {
  verb.add_option("--timeout", timeout,
                  "a run that takes longer is ended and has failed (default: ten times the first, at least 10s)")
      ->type_name("DURATION");
}

// Options of `ration run` that the verb itself sets for each run: they are hidden, and refused later if given.
void hide_own(CLI::App &verb, std::initializer_list<const char *> options) {
  for (const char *own : options) {
    verb.get_option(own)->group("");
  }
}

void describe_find_min(CLI::App &verb, FindMinRequest &request) {
  request.run.verb = "find-min";
  verb.add_option("--tolerance", request.tolerance,
                  "how close to the smallest limit, in bytes or percent of it (default: 2MiB or 0.5%, the larger)")
      ->type_name("SIZE|PERCENT");
  describe_timeout(verb, request.timeout);
  add_flag(verb, "--json", request.json, "one JSON object, sizes in bytes");
  describe_flags(verb, request.run.flags);
  describe_force(verb, request.run);
  hide_own(verb, {"--limit"});
  describe_simulation(verb, request.run);
  verb.formatter(std::make_shared<HelpFormatter>(
      kCommandArguments, std::vector<std::string>{"--tolerance", "--timeout", "--json", "--sim", "--help"}));
}

void describe_find_faults(CLI::App &verb, FindFaultsRequest &request) {
  request.run.verb = "find-faults";
  const auto keep = [&request](const std::string &given) {
    request.first = number_of<std::uint64_t>("--first", given, "it must be a number from 1 to 1000000",
                                             [](std::uint64_t count) { return count >= 1 && count <= 1'000'000; });
  };
  verb.add_option_function<std::string>("--first", keep, "refuse only the first N allocations (default 100)")
      ->type_name("N");
  describe_timeout(verb, request.timeout);
  add_flag(verb, "--json", request.json, "one JSON object, sizes in bytes");
  describe_flags(verb, request.run.flags);
  hide_own(verb, {"--log", "--fail"});
  describe_simulation(verb, request.run);
  verb.formatter(std::make_shared<HelpFormatter>(
      kCommandArguments, std::vector<std::string>{"--first", "--timeout", "--json", "--sim", "--help"}));
}

void describe_env(CLI::App &verb, EnvRequest &request) {
  request.run.verb = "env";
  add_flag(verb, "--json", request.json, "one JSON object, sizes in bytes");
  CLI::Option *files = add_flag(verb, "--files", request.files, "list the settings files, the strongest first");
  verb.add_option("--check", request.check, "print the mistakes in settings files, with their lines")
      ->type_name("FILE...")
      ->excludes(files);
  describe_options_of_run(verb, request.run);
  verb.add_option("COMMAND", request.run.command, "the command that the rules in settings files are matched against");
  verb.formatter(std::make_shared<HelpFormatter>(
      "[[--] COMMAND [ARGUMENTS...]]", std::vector<std::string>{"--json", "--files", "--check", "--sim", "--help"}));
}

void describe_set(CLI::App &verb, SetRequest &request) {
  verb.add_option("TARGET", request.target, "a group as `ration ps` names it, or the ID of a process")
      ->required()
      ->type_name("GROUP|PID");
  verb.add_option("--limit", request.limit, "of all members of the group together, or of the process, on each device")
      ->type_name("SIZE|UUID=SIZE,...|default");
  verb.add_option("--guarantee", request.guarantee,
                  "what its group always leaves to the process, or to its run, on each device that it uses")
      ->type_name("SIZE|UUID=SIZE,...|default");
  add_flag(verb, "--json", request.json, "one JSON object, sizes in bytes");
}

void describe_cdi(CLI::App &verb, CdiRequest &request) {
  verb.add_option("SHARE", request.shares,
                  "what the processes of one container may take together: 25%, 8GiB, small=2GiB")
      ->required()
      ->type_name("SIZE");
  verb.add_option("--group", request.group, "a group of all containers that get a share")->type_name("NAME");
  verb.add_option("--group-limit", request.group_limit, "what they may take together")->type_name("SIZE");
  verb.add_option("--state-dir", request.state_folder,
                  "share this folder of the host with them, for groups and `ration ps`")
      ->type_name("FOLDER");
  verb.add_option("--enforce", request.enforce, "write files into FOLDER that apply whatever the image sets")
      ->type_name("FOLDER");
  verb.add_option("-o,--output", request.output, "the file to write (default, and -: standard output)")
      ->type_name("FILE");
}

void describe_ps(CLI::App &verb, PsRequest &request) {
  CLI::Option *json = add_flag(verb, "--json", request.json, "one JSON object, sizes in bytes");
  CLI::Option *prometheus = add_flag(verb, "--prometheus", request.prometheus, "metrics in Prometheus' text format");
  CLI::Option *file =
      verb.add_option("--textfile", request.textfile, "replace FILE atomically by these metrics")->type_name("FILE");
  json->excludes(prometheus)->excludes(file);
  prometheus->excludes(file);
  add_flag(verb, "--all", request.all, "of all users (root only), from their folders in /dev/shm");
  verb.add_flag("--targets", request.targets, "")->group("");  // for completions: what `ration set` can change
  const CLI::callback_t keep = [&request](const CLI::results_t &values) {
    request.watch_seconds = values.front().empty() ? 2 : seconds_of("--watch", values.front());
    return true;
  };
  verb.add_option(
          "--watch", keep,
          "print again and again (default: every 2 seconds): tables with the time; with --json an object a line")
      ->expected(0, 1)
      ->type_name("[=DURATION]")
      ->excludes(prometheus)
      ->excludes(file);
}

void describe_top(CLI::App &verb, TopRequest &request) {
  add_flag(verb, "--all", request.all, "of all users (root only), from their folders in /dev/shm");
  const auto keep = [&request](const std::string &given) {
    request.interval_seconds = seconds_of("--interval", given);
  };
  verb.add_option_function<std::string>("--interval", keep, "time between two snapshots (default 1)")
      ->type_name("DURATION");
}

void describe_doctor(CLI::App &verb, DoctorRequest &request) {
  const auto keep = [&request](const std::string &given) {
    request.pid = number_of<int>("--pid", given, "it must be the number of a process");
  };
  verb.add_option_function<std::string>("--pid", keep, "check whether this process is limited, and why not")
      ->type_name("PID");
  add_flag(verb, "--coverage", request.coverage, "print what Ration does about each driver function");
  add_flag(verb, "--json", request.json, "one JSON object");
  request.run.verb = "doctor";
  describe_flags(verb, request.run.flags);
  describe_simulation(verb, request.run);
  verb.formatter(std::make_shared<HelpFormatter>(
      "[-- COMMAND [ARGUMENTS...]]",
      std::vector<std::string>{"--pid", "--coverage", "--json", "--limit", "--group", "--sim", "--help"}));
}

void describe_check(CLI::App &verb, CheckRequest &request) {
  verb.add_option("LOG", request.logs, "logs, one of each process; -: standard input")->required()->type_name(kLogFile);
  verb.add_option("--max-peak", request.max_peak, "the most that the blocks of a device may take at once")
      ->type_name("SIZE|DEVICE=SIZE,...");
  add_flag(verb, "--no-leaks", request.no_leaks, "every block of device memory was freed");
  add_flag(verb, "--no-growth", request.no_growth, "no caller's memory rises through the whole run");
  add_flag(verb, "--no-failures", request.no_failures, "nothing was refused or failed");
  verb.add_option("--max-fragmentation", request.max_fragmentation,
                  "the share of free memory in pieces that were too small: 5% or 0.05")
      ->type_name("PERCENT");
  CLI::Option *junit = verb.add_option("--junit", request.junit,
                                       "also write a JUnit report; -: on stdout, and what does not hold on stderr")
                           ->type_name("FILE");
  add_flag(verb, "--json", request.json, "one JSON object, sizes in bytes")->excludes(junit);
}

void describe_report(CLI::App &verb, ReportRequest &request) {
  verb.add_option("LOG", request.logs, "logs, one of each process; -: standard input")->required()->type_name(kLogFile);
  CLI::Option *by =
      verb.add_option("--by", request.by, "how to group blocks (default: caller)")->type_name(kGroupingWords);
  CLI::Option *leaks = add_flag(verb, "--leaks", request.leaks, "only what was never freed, all of it");
  CLI::Option *json = add_flag(verb, "--json", request.json, "one JSON object, sizes in bytes");
  verb.add_option("-o,--output", request.page, "write a page for a browser: all logs, over time")
      ->type_name("FILE.html")
      ->excludes(by)
      ->excludes(leaks)
      ->excludes(json);
}

void describe_convert(CLI::App &verb, ConvertRequest &request) {
  verb.add_option("LOG", request.log, "the log of one process")->required()->type_name(kLogFile);
  verb.add_option("--to", request.to, "the format")->required()->type_name("chrome|pprof|collapsed|torch|rmm-csv|csv");
  verb.add_option("-o,--output", request.output, "the file to write (default, and -: standard output)")
      ->type_name("FILE");
  verb.add_option("--at", request.at, "pprof: the moment that its inuse_ types show (default: end)")
      ->type_name("end|peak");
  verb.add_option("--of", request.of, "collapsed: which bytes are counted (default: peak)")
      ->type_name("peak|total|leaked");
}

void describe_diff(CLI::App &verb, DiffRequest &request) {
  verb.add_option("LOG", request.before, "the logs before and after; of several processes: A... -- B...")
      ->required()
      ->type_name(kLogFile);
  verb.add_option("--by", request.by, "how to group blocks (default: caller)")->type_name(kGroupingWords);
  verb.add_option("--fail-above", request.fail_above, "exit with 1 if a device's peak has grown by more")
      ->type_name("SIZE|PERCENT");
  CLI::Option *json = add_flag(verb, "--json", request.json, "one JSON object, sizes in bytes");
  verb.add_option("-o,--output", request.page, "write a page for a browser: all callers")
      ->type_name("FILE.html")
      ->excludes(json);
}

void describe_replay(CLI::App &verb, ReplayRequest &request) {
  verb.add_option("LOG", request.logs, "logs, one of each process; -: standard input")->required()->type_name(kLogFile);
  CLI::Option *limit =
      verb.add_option("--limit", request.limit, "of each device (default: the one that the log was written under)")
          ->type_name("SIZE|DEVICE=SIZE,...");
  add_flag(verb, "--find-min", request.find_min, "the smallest limit instead, to 0.05%")->excludes(limit);
  verb.add_option("--mode", request.mode, "how blocks would be served (default: pool)")->type_name("pool|direct|async");
  verb.add_option("--backing", request.backing, "what the pool would be made of (default: as in the log)")
      ->type_name("slab|vmm");
  add_flag(verb, "--json", request.json, "one JSON object, sizes in bytes");
}

// Stands among the logs of a command line of `diff` in place of --; no argument can contain a null character.
const std::string kBetweenSides("\0--", 3);

// False if no log follows the --.
bool divide_sides(DiffRequest &request) {
  const auto between = std::find(request.before.begin(), request.before.end(), kBetweenSides);
  if (between == request.before.end()) {
    return true;
  }
  request.after.assign(between + 1, request.before.end());
  request.before.erase(between, request.before.end());
  return !request.after.empty();
}

bool takes_one_value(const CLI::Option &option) {
  return !option.get_positional() && option.get_items_expected_max() == 1;
}

// If an option is given several times, the last value applies, as in most commands; say_replaced() reports that.
void let_last_hold(CLI::App &verb) {
  for (CLI::Option *option : verb.get_options()) {
    if (takes_one_value(*option)) {
      option->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
    }
  }
}

void say_replaced(const CLI::App &verb) {
  for (const CLI::Option *option : verb.get_options([](const CLI::Option *each) { return takes_one_value(*each); })) {
    const auto with = [&](const std::string &value) {
      return config::shown(option->get_name() + (value.empty() ? "" : "=" + value));
    };
    const std::vector<std::string> &values = option->results();
    for (std::size_t i = 1; i < values.size(); ++i) {
      if (values[i - 1] != values[i]) {
        log_line(verb.get_name() + ": " + with(values[i - 1]) + " is replaced by the later " + with(values[i]));
      }
    }
  }
}

}  // namespace

std::variant<Request, int> parse_arguments(std::vector<std::string> words, const char *version) {
  if (!words.empty() && words[0] == "probe") {  // not for people: no help, manual or completion mentions it
    words.erase(words.begin());
    return ProbeRequest{std::move(words)};
  }
  const auto is_verbose = [](const std::string &word) { return word == "-v" || word == "--verbose"; };
  const auto verb_at = std::find_if_not(words.begin(), words.end(), is_verbose);
  bool verbose = verb_at != words.begin();
  words.erase(words.begin(), verb_at);
  const bool help = !words.empty() && words[0] == "help";
  if (help) {  // `help VERB` means `VERB --help`
    words.erase(words.begin());
    if (words.size() > 1) {
      return usage_error("help: unexpected argument " + config::in_quotes(words[1]) + " (`ration help help`)",
                         kUsageError);
    }
    if (!words.empty() && (words[0] == "help" || words[0] == "--help" || words[0] == "-h")) {
      std::cout << kHelpOfHelp;
      return 0;
    }
    words.emplace_back("--help");
  }
  const int status = !words.empty() && words[0] == "run" ? kOurError : kUsageError;
  CLI::App app("Cap the GPU memory of CUDA programs", "ration");
  app.formatter(std::make_shared<HelpFormatter>());
  app.set_help_flag("-h,--help", "print this help");  // verbs inherit it, and the formatter
  app.set_help_all_flag("--help-all")->group("");
  app.set_version_flag("-V,--version", version, "print the version and the build");
  add_flag(app, "-v,--verbose", verbose, "print on stderr what the command decides and why");
  const CLI::Option *described = app.add_flag("--describe")->group("");  // for the build: manual/description.h
  app.footer(help_text_of("ration"));
  app.require_subcommand(0, 1);
  std::tuple<RunRequest, SetRequest, PsRequest, TopRequest, ReportRequest, CheckRequest, DoctorRequest, EnvRequest,
             ConvertRequest, DiffRequest, ReplayRequest, FindMinRequest, FindFaultsRequest, CdiRequest>
      requests;
  std::optional<Request> parsed;
  std::string group;
  const auto add = [&](const char *name, const char *help, auto describe, auto &request) {
    CLI::App *verb = app.add_subcommand(name, help)->group(group);
    verb->set_help_all_flag("--help-all")->group("");
    describe(*verb, request);
    let_last_hold(*verb);
    verb->footer(help_text_of(name));
    verb->callback([&parsed, &request] { parsed = std::move(request); });
  };
  auto &[run, set, ps, top, report, check, doctor, env, convert, diff, replay, find_min, find_faults, cdi] = requests;
  group = "Run and limit";
  add("run", "run a command under a limit", describe_run, run);
  add("set", "change a limit or a guarantee while programs run", describe_set, set);
  add("find-min", "find the smallest limit with which a command succeeds", describe_find_min, find_min);
  add("find-faults", "refuse each allocation of a command in turn, and show which it does not survive",
      describe_find_faults, find_faults);
  group = "Look";
  add("ps", "print how much device memory each process holds", describe_ps, ps);
  add("top", "show how much device memory each process holds, live", describe_top, top);
  group = "Explain a log";
  add("report", "show who held memory in a run, what grew, and which requests failed", describe_report, report);
  add("check", "check a log against limits (peak, leaks, growth, failures); for CI", describe_check, check);
  add("diff", "show what changed between two logs: peaks, callers, leaks, failures", describe_diff, diff);
  add("convert", "write a log in the format of another tool", describe_convert, convert);
  add("replay", "predict from a log whether its program fits under a limit", describe_replay, replay);
  group = "Set up";
  add("doctor", "explain why a limit is not enforced: here, for a command, or for a process", describe_doctor, doctor);
  add("env", "print the settings in force and their sources, or check a settings file", describe_env, env);
  add("cdi", "write shares of a GPU as devices for containers", describe_cdi, cdi);

  const auto verbs = app.get_subcommands([](const CLI::App *) { return true; });
  const auto is_named = [&](const CLI::App *verb) { return verb->get_name() == words[0]; };
  if (help && words.size() > 1 && std::none_of(verbs.begin(), verbs.end(), is_named)) {
    return usage_error("help: " + unknown_verb(app, words[0]), status);
  }
  std::vector<std::string> own = words;
  if (const auto flags = words.empty() ? std::nullopt : flags_of(words[0])) {
    auto split = split_line({words.begin() + 1, words.end()}, *flags);
    if (const std::string *wrong = std::get_if<std::string>(&split)) {
      return usage_error(words[0] + ": " + *wrong, status);
    }
    auto &[options, command] = std::get<SplitLine>(split);
    own = std::move(options);
    own.insert(own.begin(), words[0]);
    verbose = verbose || std::any_of(own.begin(), own.end(), is_verbose);
    for (RunRequest *each : {&run, &find_min.run, &find_faults.run, &env.run}) {
      each->command = command;
      each->verbose = verbose;
    }
  }
  if (verbose) {
    events::begin_diagnostics(events::Level::debug, {});
  }
  const auto dashes = std::find(own.begin(), own.end(), "--");
  if (std::any_of(own.begin(), dashes, [](const std::string &word) {
        return word.starts_with("--help=") || word.starts_with("--help-all=");
      })) {
    return usage_error((own.front()[0] == '-' ? "" : own.front() + ": ") + "--help: takes no value", status);
  }
  if (!own.empty() && dashes != own.end() && own.front() == "doctor") {
    if (dashes + 1 == own.end()) {
      return usage_error("doctor: no command after --", status);
    }
    doctor.run.command.assign(dashes + 1, own.end());
    own.erase(dashes, own.end());
  } else if (!own.empty() && dashes != own.end() && own.front() == "diff") {
    *dashes = kBetweenSides;  // options may follow it
  }
  try {
    app.parse(std::vector<std::string>(own.rbegin(), own.rend()));  // CLI11 reads them from the back
  } catch (const CLI::Success &request) {                           // --help and --version
    return app.exit(request);
  } catch (const CLI::ParseError &error) {
    return usage_error(wrong_words(app, own, error), status);
  }
  if (parsed) {
    say_replaced(*app.get_subcommands().front());
    if (DiffRequest *const both = std::get_if<DiffRequest>(&*parsed); both != nullptr && !divide_sides(*both)) {
      return usage_error("diff: no log after --", status);
    }
    return *std::move(parsed);
  }
  if (described->count() > 0) {
    const auto begins = [](const std::string &verb) {
      return flags_of(verb)     ? CommandBegins::kAtFirstWord
             : verb == "doctor" ? CommandBegins::kBehindDashes
                                : CommandBegins::kNowhere;
    };
    std::cout << description_of(app, begins) << '\n';
    return 0;
  }
  std::cerr << app.help();
  return status;
}

}  // namespace ration::cli
