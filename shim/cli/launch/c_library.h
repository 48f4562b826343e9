// Checks whether a program's C library can load our library. Layer: cli.
#pragma once

#include <string>
#include <vector>

#include "cli/launch/library.h"
#include "cli/launch/program.h"

namespace ration::cli {

// Returns a symbol version that one of `libraries` (paths) needs but the C library next to the program's dynamic linker
// lacks, as a sentence without its subject. The dynamic linker ends a program that preloads such a library. Empty if
// nothing is missing, or if the C library is not in the linker's folder.
// Design: design/settings.md#packages
std::string lacking_version(const ElfFile &program, const std::vector<std::string> &libraries);

// If the program has no other obstacle, records one if its C library cannot load our library.
void find_old_library(const Library &library, Program &program);

}  // namespace ration::cli
