// Finds out whether the dynamic loader can load the library and the entries of LD_PRELOAD. Each attempt runs in a
// separate process, so a damaged file can crash only that process. Layer: cli.
#pragma once

#include <string>
#include <vector>

#include "cli/launch/environment_block.h"
#include "cli/launch/program.h"
#include "cli/run/run_preparation.h"

namespace ration::cli::doctor {

// Returns one error for each file that cannot be loaded.
std::vector<std::string> errors_of_loading(const Library &library, const EnvironmentBlock &environment);

// Runs in the separate process: loads `files` in the given order, and returns the exit status.
int answer_loading(const std::vector<std::string> &files);

// An entry of LD_PRELOAD or /etc/ld.so.preload.
struct Preload {
  std::string entry;  // as written
  std::string where;  // the environment variable or file that holds the entry
  std::string file;   // the file that the loader chose for the entry; empty: none
  std::string error;  // why the loader chose no file
};

// The entries in the order in which they are loaded. The loader of `program` searches for them in `environment`, as it
// would when the program starts. No code from the program or the entries is executed.
std::vector<Preload> preloads_of(const Program &program, const EnvironmentBlock &environment);

}  // namespace ration::cli::doctor
