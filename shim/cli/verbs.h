// The verbs of `ration`, a file each. Layer: cli.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "config/options.h"

namespace ration::cli {

using Flags = std::vector<std::pair<const config::Option *, std::string>>;  // as given

struct RunRequest {
  Flags flags;
  std::optional<std::string> simulate;
  std::vector<std::string> command;
};

// Each adds its options to the verb; they are read when the line is parsed.
void describe_run(CLI::App &verb, RunRequest &request);
int run(const RunRequest &request);
// The options that are settings.
void describe_flags(CLI::App &verb, Flags &flags);

struct EnvRequest {
  RunRequest run;  // what is to be shown: the settings of this
  bool json = false;
};

void describe_env(CLI::App &verb, EnvRequest &request);
int env(const EnvRequest &request);

struct ConfigRequest {
  std::vector<std::string> files;  // to be checked
};

void describe_config(CLI::App &verb, ConfigRequest &request);
int config_files(const ConfigRequest &request);

struct PsRequest {
  bool json = false;
  bool prometheus = false;
  std::optional<std::string> textfile;
};

void describe_ps(CLI::App &verb, PsRequest &request);
int ps(const PsRequest &request);

struct TopRequest {
  bool once = false;
  bool json = false;
  double interval_seconds = 1;
};

void describe_top(CLI::App &verb, TopRequest &request);
int top(const TopRequest &request);

struct DoctorRequest {
  bool coverage = false;
  bool json = false;
};

void describe_doctor(CLI::App &verb, DoctorRequest &request);
int doctor(const DoctorRequest &request);

}  // namespace ration::cli
