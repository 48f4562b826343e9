// The functions that implement the verbs of `ration` (one file each), and their parsed arguments. Layer: cli.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "config/options.h"

namespace ration::cli {

using Flags = std::vector<std::pair<const config::Option *, std::string>>;  // values as the user gave them

struct RunRequest {
  std::string verb = "run";  // the verb to which the options were given; messages about them name it
  Flags flags;
  bool force = false;        // --log may overwrite a log
  bool embed_names = false;  // write function names into the log
  std::optional<std::string> simulate;
  std::optional<std::string> wait;  // the longest wait for room; "": no limit
  bool quiet = false;
  bool verbose = false;                // RATION_DIAGNOSTICS=debug for the command, unless that variable is set
  std::optional<std::string> summary;  // where the summary goes: a file, or "json"
  std::vector<std::string> command;
};

struct EnvRequest {
  RunRequest run;  // the run whose settings to show
  bool json = false;
  bool files = false;                // list the settings files instead
  std::optional<std::string> check;  // check this file and those in `run.command` instead
};

// A question that `ration` passes to its own helper process. verb_probe.cc lists the questions and their arguments.
struct ProbeRequest {
  std::vector<std::string> words;
};

struct SetRequest {
  std::string target;  // a group as `ration ps` names it, or a process ID
  std::optional<std::string> limit, guarantee;
  bool json = false;
};

struct CdiRequest {
  std::vector<std::string> shares;  // SIZE or NAME=SIZE
  std::optional<std::string> group, group_limit;
  std::optional<std::string> state_folder;
  std::optional<std::string> enforce;  // folder
  std::optional<std::string> output;   // file
};

struct PsRequest {
  bool json = false;
  bool prometheus = false;
  std::optional<std::string> textfile;
  std::optional<double> watch_seconds;  // nullopt: print once
  bool all = false;                     // show the processes of all users
  bool targets = false;                 // for shell completions
};

struct TopRequest {
  bool all = false;  // show the processes of all users
  double interval_seconds = 1;
};

struct DoctorRequest {
  bool coverage = false;
  std::optional<int> pid;
  RunRequest run;  // the run to examine; its command is never started
  bool json = false;
};

struct CheckRequest {
  std::vector<std::string> logs;
  std::optional<std::string> max_peak;
  bool no_leaks = false;
  bool no_growth = false;
  bool no_failures = false;
  std::optional<std::string> max_fragmentation;
  std::optional<std::string> junit;  // file
  bool json = false;
};

struct ReportRequest {
  std::vector<std::string> logs;
  std::string by = "caller";
  bool leaks = false;
  bool json = false;
  std::optional<std::string> page;  // file
};

struct ReplayRequest {
  std::vector<std::string> logs;
  std::optional<std::string> limit;
  std::string mode = "pool";
  std::string backing;  // empty: the one in the log
  bool find_min = false;
  bool json = false;
};

struct ConvertRequest {
  std::string log;
  std::string to;
  std::optional<std::string> output;  // file
  std::optional<std::string> at, of;  // what to count in the pprof and collapsed formats
};

struct DiffRequest {
  std::vector<std::string> before, after;  // log files; if there are only two, both are in `before`
  std::string by = "caller";
  std::optional<std::string> fail_above;
  bool json = false;
  std::optional<std::string> page;  // file
};

struct FindMinRequest {
  RunRequest run;
  std::optional<std::string> tolerance;
  std::optional<std::string> timeout;
  bool json = false;
};

struct FindFaultsRequest {
  RunRequest run;
  std::uint64_t first = 100;
  std::optional<std::string> timeout;
  bool json = false;
};

// Each function returns the exit status.
int run_verb(const RunRequest &request);
int run_verb(const EnvRequest &request);
int run_verb(const ProbeRequest &request);
int run_verb(const SetRequest &request);
int run_verb(const CdiRequest &request);
int run_verb(const PsRequest &request);
int run_verb(const TopRequest &request);
int run_verb(const DoctorRequest &request);
int run_verb(const CheckRequest &request);
int run_verb(const ReportRequest &request);
int run_verb(const ReplayRequest &request);
int run_verb(const ConvertRequest &request);
int run_verb(const DiffRequest &request);
int run_verb(const FindMinRequest &request);
int run_verb(const FindFaultsRequest &request);

}  // namespace ration::cli
