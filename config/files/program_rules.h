// The identity of a program, and the patterns of rules. Layer: config. Threads: values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ration::config {

// Design: design/settings.md#rules
struct ProgramIdentity {
  std::string exe;   // the path of the executable; of a script its interpreter
  std::string argv;  // the arguments, separated by blanks
};

std::string joined_words(const std::vector<std::string> &words);

// Of a command line that begins with the dynamic loader: how many words belong to it (ld.so(8)), before the program's.
std::size_t words_of_loader(const std::vector<std::string> &words);

// The file that `address` is mapped from, in the text of /proc/PID/maps (proc(5)). Empty: none.
std::string file_mapped_at(std::uintptr_t address, std::string_view maps);

// As in /proc (proc(5)); of a program that was started through the dynamic loader (ld.so PROGRAM), without the loader;
// without /proc, as in the auxiliary vector and glibc. A program that overwrites its arguments
// before it uses CUDA is matched by what it wrote.
ProgramIdentity this_program();

// `*` matches any characters, `?` any single one. The pattern must match the whole of `text`.
bool fits_pattern(std::string_view text, std::string_view pattern);

}  // namespace ration::config
