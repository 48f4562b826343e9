// The parts of a file's ELF headers that the dynamic linker would read. Layer: cli. The file may hold any bytes: every
// read is bounded, and nothing in it is executed.
#pragma once

#include <string>
#include <vector>

namespace ration::cli {

// A symbol version that the file needs from another library. Without it the dynamic linker refuses to load the file.
struct NeededVersion {
  std::string library;  // DT_SONAME
  std::string name;     // such as GLIBC_2.28
};

struct ElfFile {
  bool is_elf = false;
  // True if the file is for this program's machine and word size. If not, nothing below is read.
  bool is_native = false;
  std::string interpreter;                     // PT_INTERP; empty: no dynamic linker runs
  std::string soname;                          // DT_SONAME
  std::vector<std::string> needed;             // DT_NEEDED
  std::vector<std::string> search_paths;       // DT_RPATH, DT_RUNPATH: folders joined by colons
  std::vector<NeededVersion> needed_versions;  // DT_VERNEED
  std::vector<std::string> versions;           // DT_VERDEF: the versions that the file itself defines
};

// A file that cannot be read counts as not ELF.
ElfFile read_elf(const std::string &path);

}  // namespace ration::cli
