// What the dynamic linker would make of a file: read from its headers, never by running it. Layer: cli.
// Any bytes may be in the file; nothing outside it is read.
#pragma once

#include <string>
#include <vector>

namespace ration::cli {

struct ElfFile {
  bool is_elf = false;
  bool is_native = false;   // the machine and word size that this program was built for; else nothing below is read
  std::string interpreter;  // PT_INTERP; empty = no dynamic linker runs
  std::string soname;       // DT_SONAME
  std::vector<std::string> needed;  // DT_NEEDED
};

// Not an ELF file where it cannot be read.
ElfFile read_elf(const std::string &path);

}  // namespace ration::cli
