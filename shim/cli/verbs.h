// The verbs of `ration`, a file each, and what can be asked of them. Layer: cli.
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

// Each answers with the exit status.
int run(const RunRequest &request);

struct EnvRequest {
  RunRequest run;  // what is to be shown: the settings of this
  bool json = false;
};

int env(const EnvRequest &request);

struct ConfigRequest {
  std::vector<std::string> files;  // to be checked
};

int config_files(const ConfigRequest &request);

struct PsRequest {
  bool json = false;
  bool prometheus = false;
  std::optional<std::string> textfile;
};

int ps(const PsRequest &request);

struct TopRequest {
  bool once = false;
  bool json = false;
  double interval_seconds = 1;
};

int top(const TopRequest &request);

struct DoctorRequest {
  bool coverage = false;
  bool json = false;
};

int doctor(const DoctorRequest &request);

}  // namespace ration::cli
