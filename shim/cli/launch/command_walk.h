// Follows a command line from each command to the command that it starts (nice, env, sudo, sh -c, ration run). Reads
// only the words of the line and the text of scripts and makefiles; starts nothing. Layer: cli. Threads: one.
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
  // The point at which the LD_PRELOAD that names the library is lost.
  struct Loss {
    std::string name;    // the command's name
    std::string reason;  // a sentence without its subject
    std::string remedy;
    // False if the environment goes to a place where the library may also exist, under the same path.
    bool is_certain = true;
  };

  std::vector<Stage> stages;     // never empty; the last one is the program, as far as known
  EnvironmentBlock environment;  // the last stage's, or, if there is a `loss`, the first stage's
  EnvironmentBlock probed;       // the first stage's, with the variables that the line sets
  std::optional<Loss> loss;      // a loss that no later stage undoes
  struct Change {
    std::string name;      // the command that changes it
    std::string variable;  // such as RATION_LIMIT
    std::string was;
    std::string becomes;  // empty: the variable is unset
  };
  std::vector<Change> changes;    // changes that later stages make to the first stage's settings
  std::optional<Loss> suspicion;  // a possible loss, such as "sh has a command line that changes LD_PRELOAD"
  std::string unchecked;          // the command that starts an unknown program; empty: none
  bool is_open = false;           // the program is unknown, because a shell variable names it
  bool is_elsewhere = false;      // the last stage sees other files: in a container or on another machine
  bool has_other_rights = false;  // the last stage has other rights, because sudo or su starts it
};

// `words`: not empty. `own`: the environment of the first stage.
CommandWalk walk_command(const std::vector<std::string> &words, const EnvironmentBlock &own, const Library &library);

// The program of the last stage, and any obstacle that keeps the library out of it.
Program last_program(const CommandWalk &walk, const Library &library);
CommandWalk::Loss not_intercepted(const std::string &name, const Program &program);
// "env sets RATION_LIMIT=8GiB, in place of 1GiB".
std::string said(const CommandWalk::Change &change);
// True if the words are a call of a launcher that starts nothing, such as `docker ps`.
bool only_asks(const std::vector<std::string> &words);
// Why a limit in the settings cannot be enforced on the program that the command starts, and a remedy. nullopt if no
// reason is found.
std::optional<CommandWalk::Loss> loss_of_limit(const CommandWalk &walk, const Library &library);

// The path of the running `ration`, for suggested command lines that clear PATH.
std::string own_command();
// True if `path` names a shell, that is, a program that only executes the commands of a script.
bool is_shell(const std::string &path);

}  // namespace ration::cli
