// What the dynamic loader makes of the library, and of the entries of LD_PRELOAD, tried by processes that are started
// for it: a damaged file ends such a process alone. Layer: cli.
#pragma once

#include <string>
#include <vector>

#include "cli/launch/environment_block.h"
#include "cli/launch/program.h"
#include "cli/run/run_preparation.h"

namespace ration::cli::doctor {

// One for each file that cannot be loaded; empty: none.
std::vector<std::string> errors_of_loading(const Library &library, const EnvironmentBlock &environment);

// The started process. `files`: to load, in this order. Returns the exit status.
int answer_loading(const std::vector<std::string> &files);

// An entry of LD_PRELOAD or /etc/ld.so.preload.
struct Preload {
  std::string entry;  // as written
  std::string where;  // the variable, or the file
  std::string file;   // that the loader chose for it; empty: none
  std::string error;  // why none
};

// In the order of loading. The loader of `program` looks for them in `environment`, as at the program's start; it does
// not start it, and executes nothing of theirs.
std::vector<Preload> preloads_of(const Program &program, const EnvironmentBlock &environment);

}  // namespace ration::cli::doctor
