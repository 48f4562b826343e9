// The stacks of a log (from its `mod`, `frame` and `stack` records), prepared for readers.
// Layer: logs. Threads: none of its own. Native frames are resolved when they are first requested, from the log's own
// `names` or else from the files that the log names (symbols.h). The files can serve only on the machine that wrote the
// log or a machine with the same files.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "logs/reader/record.h"
#include "logs/stacks/stack_frame.h"
#include "logs/stacks/symbols.h"

namespace ration::logs {

class StackTable {
 public:
  // Takes `meta`, `mod`, `frame`, `stack` and `names` records; ignores the others.
  void add(const Record &record);

  // The frames of a stack, innermost first. A native frame yields an additional entry for each function inlined there.
  // Empty: there is no such stack.
  std::vector<StackFrame> frames(std::uint64_t stack);
  // The name to show for memory that this stack allocated: the innermost place in the program itself, and its caller,
  // because the innermost place is often a helper. If the program is not in the stack, the name is the library farthest
  // from the driver. "" if there is no stack.
  enum class Lines { shown, left_out };  // left_out: so that a name stays the same if code is inserted above
  std::string caller(std::uint64_t stack, Lines lines = Lines::shown);
  // True if the program is Python but its own functions are in no stack.
  bool lacks_python() const;
  // The files whose functions have no names, and why (symbols.h). Covers only the stacks that were requested.
  const std::map<std::string, std::string> &unnamed() const { return symbols_.unnamed(); }
  // Whether functions of the program have no names because its file was stripped.
  bool is_stripped() const { return symbols_.is_stripped(program_); }
  // The library that requested the memory: the innermost one that belongs to neither the driver nor the runtime.
  std::string library(std::uint64_t stack);

 private:
  struct Place {  // a `frame` record
    std::uint64_t module = 0, offset = 0;
    StackFrame python;
    std::vector<StackFrame> named;     // from the log's `names`
    std::vector<StackFrame> resolved;  // for a native frame; empty: not yet resolved
  };
  struct Node {  // a `stack` record
    std::uint64_t place = 0, parent = 0;
  };
  const std::vector<StackFrame> &resolve(Place &place);

  std::string program_;
  std::unordered_map<std::uint64_t, Module> modules_;
  std::unordered_map<std::uint64_t, Place> places_;
  std::unordered_map<std::uint64_t, Node> nodes_;
  bool has_python_ = false;
  Symbols symbols_;
};

}  // namespace ration::logs
