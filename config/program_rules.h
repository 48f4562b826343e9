// Which program this is, and whether the pattern of a file means it. Layer: config. Threads: values.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ration::config {

struct ProgramIdentity {
  std::string exe;   // the path of what runs: of a script its interpreter's
  std::string argv;  // its words, a blank between each
};

std::string joined_words(const std::vector<std::string> &words);

// As the kernel shows this process (proc(5)); where there is no /proc, as glibc was told. A program may overwrite its
// own words before it uses CUDA, and is then known by what it wrote.
ProgramIdentity this_program();

// `*` is any characters, `?` any one; every other character is itself. The whole of `text` must fit.
bool fits_pattern(std::string_view text, std::string_view pattern);

}  // namespace ration::config
