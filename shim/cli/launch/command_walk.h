// Follows a command line from each command to the next one that it starts (nice, env, sudo, sh -c, ration run). Reads
// only its words and the texts of scripts and makefiles; starts nothing. Layer: cli. Threads: one.
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
    std::string search_path;  // the value of PATH
  };
  // The point at which LD_PRELOAD with the library is lost.
  struct Loss {
    std::string name;    // the command's name
    std::string reason;  // a sentence without a subject
    std::string remedy;
    // If false, the environment is passed on to a place where the library may exist under the same path.
    bool is_certain = true;
  };

  std::vector<Stage> stages;     // at least one; the last is the program, as far as known
  EnvironmentBlock environment;  // of the last stage if it has the library, else of the first
  EnvironmentBlock probed;       // of the first stage, with the variables that the line sets
  std::optional<Loss> loss;      // a loss that no later stage repairs
  struct Change {
    std::string name;      // the command that changes it
    std::string variable;  // such as RATION_LIMIT
    std::string was;
    std::string becomes;  // empty: the variable is unset
  };
  std::vector<Change> changes;    // changes to the first stage's settings
  std::optional<Loss> suspicion;  // a possible loss in a text: "sh has a command line that changes LD_PRELOAD"
  std::string unchecked;          // the command that starts something unknown; empty: none
  bool is_open = false;           // the program is unknown, because a shell variable names it
  bool is_elsewhere = false;      // the last stage sees other files: in a container, on another machine
  bool has_other_rights = false;  // the last stage has other rights: it is started by sudo or su
};

// `words`: at least one. `own`: the environment of the first stage.
CommandWalk walk_command(const std::vector<std::string> &words, const EnvironmentBlock &own, const Library &library);

// The program of the last stage, with the obstacle that keeps the library out of it.
Program last_program(const CommandWalk &walk, const Library &library);
CommandWalk::Loss not_intercepted(const std::string &name, const Program &program);
// "env sets RATION_LIMIT=8GiB, in place of 1GiB".
std::string said(const CommandWalk::Change &change);
// Why a limit in the settings cannot be enforced on the program that the command starts, and what helps. nullopt if no
// reason is found.
std::optional<CommandWalk::Loss> loss_of_limit(const CommandWalk &walk, const Library &library);

// The path of this command, for remedies that clear PATH.
std::string own_command();
// True if this is the name of a shell: a program that only executes the commands of a script.
bool is_shell(const std::string &path);

}  // namespace ration::cli
