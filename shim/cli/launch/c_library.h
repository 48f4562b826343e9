// Whether a program's C library can load ours. Layer: cli.
#pragma once

#include <string>
#include <vector>

#include "cli/launch/library.h"
#include "cli/launch/program.h"

namespace ration::cli {

// What one of `libraries` (paths) needs of the C library beside the program's dynamic linker, and that does not have: a
// sentence without a subject. The dynamic linker ends a program that preloads such a library. Empty where nothing is
// missing, or where the C library is not beside it.
// Design: design/settings.md#packages
std::string lacking_version(const ElfFile &program, const std::vector<std::string> &libraries);

// Where the program has no other obstacle: that its C library cannot load our library.
void find_old_library(const Library &library, Program &program);

}  // namespace ration::cli
