// What a command will really run, and whether anything can be preloaded into it; looked at before it is started.
// Layer: cli.
#pragma once

#include <string>
#include <vector>

#include "cli/run/elf_file.h"

namespace ration::cli {

enum class Obstacle {
  kNone,
  kStatic,   // no dynamic linker runs
  kSecure,   // the kernel sets AT_SECURE: the dynamic linker ignores what is preloaded by path
  kMusl,     // another C library, whose dynamic linker cannot load ours
  kForeign,  // another machine or word size
};

struct Program {
  int exit_status = 0;             // else 126 or 127, and `reason` says why it cannot be started
  std::string reason;              // why it cannot be started, or what the obstacle is
  std::string path;                // for execve
  std::string runs;                // the ELF file at the end of the `#!` chain
  ElfFile elf;                     // of `runs`
  std::vector<std::string> words;  // what its command line begins with in place of `name`: a script's interpreter, too
  bool for_shell = false;          // no ELF file: where execve says ENOEXEC, execvp(3) gives it to /bin/sh
  Obstacle obstacle = Obstacle::kNone;
};

// `name` as execvp(3) would look for it along `search_path` (the value of PATH).
Program inspect_program(const std::string &name, const std::string &search_path);

// The interpreter and the rest of the line of a script; both empty where the file does not begin with "#!".
struct Shebang {
  std::string interpreter, argument;
};
Shebang read_shebang(const std::string &path);

// The command and its arguments in the words behind /usr/bin/env in a `#!` line: past options and NAME=value. Empty
// where there is none.
std::vector<std::string> command_of_env(const std::string &argument);

}  // namespace ration::cli
