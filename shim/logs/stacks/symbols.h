// Names native code: finds the function, file and line of an offset in an ELF file.
// Layer: logs. Threads: none of its own. Owns: the files that it has read.
//
// elfutils (libdw.so.1) is loaded at run time if it is installed. It reads DWARF: lines, inlined functions, and
// separate files of debug information, which it finds by build id. Without it, function names come from the ELF symbol
// table.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
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

  // The frames of a return address `offset` bytes above the file's load address: first the functions that were inlined
  // there, innermost first, then the function itself. If nothing is known, or the file has another build ID than the
  // module, there is one frame named after the offset.
  const std::vector<StackFrame> &at(const Module &module, std::uint64_t offset);
  // The files in which no function could be named, and why: "it has changed since" or "it is not here".
  const std::map<std::string, std::string> &unnamed() const { return unnamed_; }
  // Whether functions of a file have no names because it was stripped.
  bool is_stripped(const std::string &path) const { return stripped_.count(path) != 0; }

 private:
  class File;
  std::map<std::string, std::unique_ptr<File>> files_;
  std::map<std::string, std::string> unnamed_;
  std::set<std::string> stripped_;
  std::map<std::pair<std::string, std::uint64_t>, std::vector<StackFrame>> known_;  // by path, build ID and offset
};

}  // namespace ration::logs
