// Checks whether a program's C library can load our library. Layer: cli.
#pragma once

#include <string>
#include <vector>

#include "cli/launch/library.h"
#include "cli/launch/program.h"

namespace ration::cli {

// Returns a symbol version that one of `libraries` (paths) needs but the program's C library lacks, worded as a
// sentence without a subject. The dynamic linker would end a program that preloads such a library. Looks for the C
// library in the dynamic linker's folder. Empty if there is no C library, or if it lacks nothing.
// Design: design/settings.md#packages
std::string lacking_version(const ElfFile &program, const std::vector<std::string> &libraries);

// Records an obstacle if the program's C library cannot load our library, unless the program already has an obstacle.
void find_old_library(const Library &library, Program &program);

}  // namespace ration::cli
