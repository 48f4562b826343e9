// The `ration` command. Layer: cli. Data on stdout, talk on stderr.
#include <iostream>

#include "cli/command_line.h"
#include "cli/exit_status.h"
#include "cli/talk.h"
#include "cli/verbs.h"
#include "config/wording.h"

namespace {

using ration::cli::kOurError;
using ration::cli::say;

constexpr const char *kExamples =
    "Examples:\n"
    "  ration run --limit 40% --log run.jsonl -- ./train     hold a program to 40% of each GPU\n"
    "  ration run --sim 2x8GiB -- ./train                    without a GPU: two simulated ones\n"
    "  ration ps                                             who holds how much (ration top: live)\n"
    "  ration run --help                                     all options of a verb\n"
    "  ration env                                            which settings hold, and where they come from\n"
    "  ration config --check ration.json                     what is wrong with a file of settings\n"
    "  ration doctor --coverage                              what Ration does about each function of the driver";

int complain(std::string line) {
  // CLI11 breaks some of its sentences into several lines.
  for (char &c : line) {
    c = c == '\n' ? ' ' : c;
  }
  say(line);
  return kOurError;
}

int act(const std::vector<std::string> &arguments) {
  CLI::App app("A ration of GPU memory for every CUDA process", "ration");
  app.set_version_flag("--version", "ration " RATION_VERSION);
  app.footer(kExamples);
  app.require_subcommand(0, 1);
  ration::cli::RunRequest run_request;
  ration::cli::EnvRequest env_request;
  ration::cli::ConfigRequest config_request;
  ration::cli::PsRequest ps_request;
  ration::cli::TopRequest top_request;
  ration::cli::DoctorRequest doctor_request;
  CLI::App *run = app.add_subcommand("run", "run a command under its ration");
  CLI::App *ps = app.add_subcommand("ps", "print who holds how much device memory");
  CLI::App *top = app.add_subcommand("top", "show who holds how much device memory, live");
  CLI::App *doctor = app.add_subcommand("doctor", "say what Ration covers");
  CLI::App *env = app.add_subcommand("env", "print the settings that hold here, and their sources");
  CLI::App *config = app.add_subcommand("config", "list the files of settings, or check one");
  describe_run(*run, run_request);
  describe_ps(*ps, ps_request);
  describe_top(*top, top_request);
  describe_doctor(*doctor, doctor_request);
  describe_env(*env, env_request);
  describe_config(*config, config_request);

  std::vector<std::string> own = arguments;
  if (!arguments.empty() && arguments[0] == "run") {
    const auto split = ration::cli::split_line({arguments.begin() + 1, arguments.end()});
    if (const std::string *wrong = std::get_if<std::string>(&split)) {
      return complain("run: " + *wrong);
    }
    own = std::get<ration::cli::SplitLine>(split).own;
    own.insert(own.begin(), "run");
    run_request.command = std::get<ration::cli::SplitLine>(split).command;
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
    return ration::cli::run(run_request);
  }
  if (*ps) {
    return ration::cli::ps(ps_request);
  }
  if (*top) {
    return ration::cli::top(top_request);
  }
  if (*doctor) {
    return ration::cli::doctor(doctor_request);
  }
  if (*env) {
    return ration::cli::env(env_request);
  }
  if (*config) {
    return ration::cli::config_files(config_request);
  }
  std::cerr << app.help();
  return kOurError;
}

}  // namespace

int main(int argc, char **argv) {
  try {
    return act({argv + 1, argv + std::max(argc, 1)});
  } catch (const std::exception &error) {  // no memory, no output: nothing of the command's
    return complain(error.what());
  }
}
