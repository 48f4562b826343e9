// Follows a command line from one command to the next that it starts (nice, env, sudo, sh -c, ration run) as far as the
// words, and the first lines of scripts, say it. Nothing is started. Layer: cli. Threads: one.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/run/environment_block.h"
#include "cli/run/run_preparation.h"

namespace ration::cli::doctor {

struct CommandWalk {
  // One command of the line.
  struct Stage {
    std::vector<std::string> words;
    std::string search_path;  // PATH
  };
  // Where LD_PRELOAD with the library is lost.
  struct Loss {
    std::string name;    // of the command
    std::string reason;  // a sentence without a subject
    std::string remedy;
  };

  std::vector<Stage> stages;       // at least one; the last is the program, as far as is known
  EnvironmentBlock environment;    // of the last, where it has the library; else that of the first
  EnvironmentBlock probed;         // of the first, with what the line sets
  std::optional<Loss> loss;        // that nothing behind it makes good
  std::vector<std::string> takes;  // settings that the line unsets: "env unsets RATION_LIMIT"
  std::string unchecked;           // which of them starts what is not known; empty: none
  bool is_elsewhere = false;       // the last has other files: in a container, on another machine
  bool has_other_rights = false;   // the last
};

// `words`: at least one. `own`: the environment of the first.
CommandWalk walk_command(const std::vector<std::string> &words, const EnvironmentBlock &own, const Library &library);

// By what a line of a shell, or of a script, loses LD_PRELOAD: "changes LD_PRELOAD", "loses LD_PRELOAD by sudo"; empty:
// not seen.
std::string loss_in_line(const std::string &line, const EnvironmentBlock &own, const Library &library);

// Where this command is, for remedies that clear PATH.
std::string own_command();
// Whether a program of this name only executes what a script says.
bool is_shell(const std::string &path);

}  // namespace ration::cli::doctor
