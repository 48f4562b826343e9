// Which file a command will execute, and whether a library can be preloaded into it; read before it is started.
// Layer: cli.
#pragma once

#include <string>
#include <vector>

#include "cli/launch/elf_file.h"

namespace ration::cli {

enum class Obstacle {
  kNone,
  kStatic,      // no dynamic linker runs
  kSecure,      // the kernel sets AT_SECURE: the dynamic linker ignores LD_PRELOAD entries that are paths
  kMusl,        // another C library, whose dynamic linker cannot load ours
  kForeign,     // another machine or word size
  kOldLibrary,  // a glibc that is too old for ours: its dynamic linker would end the program
};

struct Program {
  int exit_status = 0;             // 126 or 127 where it cannot be started
  std::string reason;              // why it cannot be started, or what the obstacle is
  std::string path;                // for execve
  std::string runs;                // the ELF file at the end of the `#!` chain
  ElfFile elf;                     // of `runs`
  std::vector<std::string> words;  // what replaces `name` on its command line: includes the interpreter of a script
  bool for_shell = false;          // not ELF: after ENOEXEC execvp(3) gives it to /bin/sh
  Obstacle obstacle = Obstacle::kNone;
};

// Whether the file is the dynamic loader itself, which starts the program that it is given (ld.so(8)).
bool is_dynamic_linker(const ElfFile &elf);

// Searches for `name` as execvp(3) does, along `search_path` (the value of PATH).
Program inspect_program(const std::string &name, const std::string &search_path);

// The interpreter of a script and the rest of its `#!` line; both empty where the file does not begin with "#!".
struct Shebang {
  std::string interpreter, argument;
};
Shebang read_shebang(const std::string &path);

// The command that /usr/bin/env runs, given the words after it in a `#!` line: without options and NAME=value. Empty
// where there is none.
std::vector<std::string> command_of_env(const std::string &argument);

}  // namespace ration::cli
