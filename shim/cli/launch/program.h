// Which file a command will execute, and whether a library can be preloaded into it, determined before it is started.
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
  kForeign,     // built for another machine or word size
  kOldLibrary,  // a glibc that is too old for our library: its dynamic linker would end the program
};

struct Program {
  int exit_status = 0;  // 126 or 127 if it cannot be started
  std::string reason;   // why it cannot be started, or what the obstacle is
  std::string path;     // the path for execve
  std::string runs;     // the ELF file at the end of the `#!` chain
  ElfFile elf;          // the headers of `runs`
  // The words that replace `name` on its command line; if it is a script, its interpreter comes first.
  std::vector<std::string> words;
  bool for_shell = false;  // not ELF: execvp(3) gives it to /bin/sh after ENOEXEC
  Obstacle obstacle = Obstacle::kNone;
};

// True if the file is the dynamic loader itself, which starts the program that its arguments name (ld.so(8)).
bool is_dynamic_linker(const ElfFile &elf);

// Searches for `name` as execvp(3) does, along `search_path` (the value of PATH).
Program inspect_program(const std::string &name, const std::string &search_path);

// The interpreter of a script and the rest of its `#!` line; both empty if the file does not begin with "#!".
struct Shebang {
  std::string interpreter, argument;
};
Shebang read_shebang(const std::string &path);

// The command that /usr/bin/env runs, given the words after it in a `#!` line, without options and NAME=value. Empty if
// there is none.
std::vector<std::string> command_of_env(const std::string &argument);

}  // namespace ration::cli
