// The identity of a program, and the patterns that rules match with it. Layer: config. Threads: values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ration::config {

// Design: design/settings.md#rules
struct ProgramIdentity {
  std::string exe;   // the path of the executable; for a script, the path of its interpreter
  std::string argv;  // the arguments, separated by blanks
};

std::string joined_words(const std::vector<std::string> &words);

// For a command line that begins with the dynamic loader (ld.so(8)): how many words belong to the loader. The program's
// words follow them.
std::size_t words_of_loader(const std::vector<std::string> &words);

// The file that is mapped at `address`, according to `maps`, the text of /proc/PID/maps (proc(5)). Empty: none.
std::string file_mapped_at(std::uintptr_t address, std::string_view maps);

// The identity of this process, from /proc (proc(5)); without /proc, from the auxiliary vector and glibc. If the
// program was started through the dynamic loader (ld.so PROGRAM), the loader is left out. If a program overwrites its
// arguments before it uses CUDA, the overwritten text is matched.
ProgramIdentity this_program();

// `*` matches any characters, `?` any single character. The pattern must match the whole of `text`.
bool fits_pattern(std::string_view text, std::string_view pattern);

}  // namespace ration::config
