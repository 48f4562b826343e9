// Follows a command line from one command to the next that it starts (nice, env, sudo, sh -c, ration run) as far as the
// words, and the first lines of scripts, say it. Nothing is started. Layer: cli. Threads: one.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/launch/environment_block.h"
#include "cli/launch/library.h"
#include "cli/launch/program.h"

namespace ration::cli {

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
    bool is_certain = true;  // else the environment is passed on, to where the library may be under the same path
  };

  std::vector<Stage> stages;     // at least one; the last is the program, as far as is known
  EnvironmentBlock environment;  // of the last, where it has the library; else that of the first
  EnvironmentBlock probed;       // of the first, with what the line sets
  std::optional<Loss> loss;      // that nothing behind it makes good
  struct Change {
    std::string name;      // of the command
    std::string variable;  // RATION_LIMIT
    std::string was;
    std::string becomes;  // empty: it is unset
  };
  std::vector<Change> changes;    // of settings of the first
  std::string suspicion;          // of a command line: "has a command line that changes LD_PRELOAD"; empty: none
  std::string unchecked;          // which of them starts what is not known; empty: none
  bool is_elsewhere = false;      // the last has other files: in a container, on another machine
  bool has_other_rights = false;  // the last
};

// `words`: at least one. `own`: the environment of the first.
CommandWalk walk_command(const std::vector<std::string> &words, const EnvironmentBlock &own, const Library &library);

// The program of the last stage, with what keeps the library out of it there.
Program last_program(const CommandWalk &walk, const Library &library);
CommandWalk::Loss not_intercepted(const std::string &name, const Program &program);
// "env sets RATION_LIMIT=8GiB, in place of 1GiB".
std::string said(const CommandWalk::Change &change);
// Why a limit, asked for as `own` has it, cannot be enforced on what the command starts, and what helps. Nothing: none
// is seen.
std::optional<CommandWalk::Loss> loss_of_limit(const CommandWalk &walk, const Library &library);

// By what a line of a shell, or of a script, loses LD_PRELOAD: "changes LD_PRELOAD", "loses LD_PRELOAD by sudo"; empty:
// not seen.
std::string loss_in_line(const std::string &line, const EnvironmentBlock &own, const Library &library);

// The same of the lines of a shell's script.
std::string loss_in_script(const Program &program, const EnvironmentBlock &own, const Library &library);

// Where this command is, for remedies that clear PATH.
std::string own_command();
// Whether a program of this name only executes what a script says.
bool is_shell(const std::string &path);

}  // namespace ration::cli
