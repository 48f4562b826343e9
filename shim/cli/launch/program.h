// Determines, before a command is started, which file it will execute and whether a library can be preloaded into it.
// Layer: cli.
#pragma once

#include <string>
#include <vector>

#include "cli/launch/elf_file.h"

namespace ration::cli {

enum class Obstacle {
  kNone,
  kStatic,      // no dynamic linker is used
  kSecure,      // the kernel sets AT_SECURE, so the dynamic linker ignores paths in LD_PRELOAD
  kMusl,        // another C library, whose dynamic linker cannot load ours
  kForeign,     // built for another machine or word size
  kOldLibrary,  // its glibc is too old for our library, so the dynamic linker would end the program
};

struct Program {
  int exit_status = 0;  // 126 or 127 if it cannot be started
  std::string reason;   // why it cannot be started, or a description of the obstacle
  std::string path;     // the path to pass to execve
  std::string runs;     // the ELF file at the end of the `#!` chain
  ElfFile elf;          // the headers of `runs`
  // The words that replace `name` on the command line; for a script, they begin with the interpreter.
  std::vector<std::string> words;
  bool for_shell = false;  // not ELF, so execvp(3) passes it to /bin/sh after ENOEXEC
  Obstacle obstacle = Obstacle::kNone;
};

// True if the file is the dynamic loader itself, which starts the program that its arguments name (ld.so(8)).
bool is_dynamic_linker(const ElfFile &elf);

// Searches for `name` as execvp(3) does, along `search_path` (the value of PATH).
Program inspect_program(const std::string &name, const std::string &search_path);

// A script's interpreter and the rest of its `#!` line. Both are empty if the file does not begin with "#!".
struct Shebang {
  std::string interpreter, argument;
};
Shebang read_shebang(const std::string &path);

// The command that /usr/bin/env runs, given the words that follow it in a `#!` line. Options and NAME=value words are
// left out. Empty if there is none.
std::vector<std::string> command_of_env(const std::string &argument);

}  // namespace ration::cli
