// What the dynamic linker would read in a file's ELF headers. Layer: cli.
// The file may hold any bytes: every read is bounded, and nothing in it is executed.
#pragma once

#include <string>
#include <vector>

namespace ration::cli {

struct ElfFile {
  bool is_elf = false;
  bool is_native = false;           // this program's machine and word size; otherwise nothing below is read
  std::string interpreter;          // PT_INTERP; empty: no dynamic linker runs
  std::string soname;               // DT_SONAME
  std::vector<std::string> needed;  // DT_NEEDED
};

// A file that cannot be read counts as not ELF.
ElfFile read_elf(const std::string &path);

}  // namespace ration::cli
