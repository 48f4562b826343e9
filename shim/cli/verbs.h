// The verbs of `ration`, one file each, and their parsed arguments. Layer: cli.
#pragma once

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

struct EnvRequest {
  RunRequest run;  // shows the settings of this
  bool json = false;
  bool answers_probe = false;  // driver_probe.h
};

struct ConfigRequest {
  std::vector<std::string> files;  // to check
};

struct PsRequest {
  bool json = false;
  bool prometheus = false;
  std::optional<std::string> textfile;
};

struct TopRequest {
  bool once = false;
  bool json = false;
  double interval_seconds = 1;
};

struct DoctorRequest {
  bool coverage = false;
  std::optional<std::string> log;
  bool json = false;
};

// Each returns the exit status.
int run_verb(const RunRequest &request);
int run_verb(const EnvRequest &request);
int run_verb(const ConfigRequest &request);
int run_verb(const PsRequest &request);
int run_verb(const TopRequest &request);
int run_verb(const DoctorRequest &request);

}  // namespace ration::cli
