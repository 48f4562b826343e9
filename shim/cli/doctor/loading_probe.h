// Finds out whether the dynamic loader can load the library and the entries of LD_PRELOAD. Separate processes try this,
// so a damaged file can only crash one of them. Layer: cli.
#pragma once

#include <string>
#include <vector>

#include "cli/launch/environment_block.h"
#include "cli/launch/program.h"
#include "cli/run/run_preparation.h"

namespace ration::cli::doctor {

// One error for each file that cannot be loaded; empty if there is none.
std::vector<std::string> errors_of_loading(const Library &library, const EnvironmentBlock &environment);

// Runs in the started process: loads `files` in this order, and returns the exit status.
int answer_loading(const std::vector<std::string> &files);

// An entry of LD_PRELOAD or /etc/ld.so.preload.
struct Preload {
  std::string entry;  // as written
  std::string where;  // the variable or the file that holds the entry
  std::string file;   // the file that the loader chose for it; empty: none
  std::string error;  // why it chose none
};

// The entries in the order in which they are loaded. The loader of `program` searches for them in `environment` as it
// would at the program's start; no code of the program or of the entries is executed.
std::vector<Preload> preloads_of(const Program &program, const EnvironmentBlock &environment);

}  // namespace ration::cli::doctor
