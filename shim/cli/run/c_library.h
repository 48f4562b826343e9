// Whether a program's C library can load ours. Layer: cli.
#pragma once

#include <string>
#include <vector>

#include "cli/run/elf_file.h"

namespace ration::cli {

// What one of `libraries` (paths) needs of the C library beside the program's dynamic linker, and that does not have: a
// sentence without a subject. The dynamic linker ends a program that preloads such a library. Empty where nothing is
// missing, or where the C library is not beside it.
std::string lacking_version(const ElfFile &program, const std::vector<std::string> &libraries);

}  // namespace ration::cli
