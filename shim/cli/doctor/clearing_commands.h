// Commands that start others without this process's LD_PRELOAD, by their names: they clear the environment, gain
// privileges, or start the program on another machine or in a container. Layer: cli. Threads: pure functions.
#pragma once

#include <string>
#include <vector>

namespace ration::cli::doctor {

struct ClearingCommand {
  std::string name;    // empty: the command is none of them
  std::string reason;  // a sentence without a subject
  std::string remedy;
};

// `words`: the command with its arguments. Looks through commands that only change how another one runs (nice,
// timeout).
ClearingCommand clearing_command(const std::vector<std::string> &words);

}  // namespace ration::cli::doctor
