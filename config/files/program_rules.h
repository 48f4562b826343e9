// The identity of a program, and the patterns of rules. Layer: config. Threads: values.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ration::config {

struct ProgramIdentity {
  std::string exe;   // the path of the executable; of a script its interpreter
  std::string argv;  // the arguments, separated by blanks
};

std::string joined_words(const std::vector<std::string> &words);

// As in /proc (proc(5)); without /proc, as in the auxiliary vector and glibc. A program that overwrites its arguments
// before it uses CUDA is matched by what it wrote.
ProgramIdentity this_program();

// `*` matches any characters, `?` any single one. The pattern must match the whole of `text`.
bool fits_pattern(std::string_view text, std::string_view pattern);

}  // namespace ration::config
