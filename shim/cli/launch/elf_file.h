// Reads those parts of a file's ELF headers that the dynamic linker would read. Layer: cli. The file may hold any
// bytes: every read is bounded, and nothing in it is executed.
#pragma once

#include <string>
#include <vector>

namespace ration::cli {

// A symbol version that the file needs from a library. If it is missing, the dynamic linker refuses to load the file.
struct NeededVersion {
  std::string library;  // DT_SONAME
  std::string name;     // such as GLIBC_2.28
};

struct ElfFile {
  bool is_elf = false;
  // True if the file is for the machine and word size of this program. Otherwise the fields below are not read.
  bool is_native = false;
  std::string interpreter;                     // PT_INTERP; empty: no dynamic linker is used
  std::string soname;                          // DT_SONAME
  std::vector<std::string> needed;             // DT_NEEDED
  std::vector<std::string> search_paths;       // DT_RPATH, DT_RUNPATH: each a colon-separated list of folders
  std::vector<NeededVersion> needed_versions;  // DT_VERNEED
  std::vector<std::string> versions;           // DT_VERDEF: the versions that the file itself defines
};

// An unreadable file counts as a file that is not ELF.
ElfFile read_elf(const std::string &path);

}  // namespace ration::cli
