// Names native code: which function, file and line an offset in an ELF file is.
// Layer: logs. Threads: none of its own. Owns: the files that it has read.
//
// elfutils (libdw.so.1), loaded at run time where it is installed, reads DWARF: lines, inlined functions, and separate
// files of debug information by their build id. Without it the ELF symbol table names functions.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "logs/stacks/stack_frame.h"

namespace ration::logs {

struct Module {  // a `mod` record
  std::string path, build_id;
};

class Symbols {
 public:
  Symbols();
  ~Symbols();
  Symbols(Symbols &&) noexcept;

  // Of a return address `offset` bytes from the file's load address: the function, after those that were inlined there,
  // innermost first. One frame with the offset as its name where nothing is known, or the file is not the one that the
  // build id names.
  const std::vector<StackFrame> &at(const Module &module, std::uint64_t offset);
  // Files of which no function could be named, and why: "it has changed since", "it is not here".
  const std::map<std::string, std::string> &unnamed() const { return unnamed_; }

 private:
  class File;
  std::map<std::string, std::unique_ptr<File>> files_;
  std::map<std::string, std::string> unnamed_;
  std::map<std::pair<std::string, std::uint64_t>, std::vector<StackFrame>> known_;  // by path and build id, and offset
};

}  // namespace ration::logs
