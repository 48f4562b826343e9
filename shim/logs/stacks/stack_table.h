// The stacks of a log: its `mod`, `frame` and `stack` records, and what they mean to a reader.
// Layer: logs. Threads: none of its own. Native frames are resolved when they are first asked for: from the log's own
// `names`, else from the files that it names (symbols.h), so on the machine that wrote it, or one with the same files.
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
  // Takes `meta`, `mod`, `frame`, `stack` and `names` records, and ignores the others.
  void add(const Record &record);

  // Innermost first; a native frame counts once for each function that was inlined there. Empty: there is no such
  // stack.
  std::vector<StackFrame> frames(std::uint64_t stack);
  // Who is to be named for what this stack allocated: its innermost place in the program itself, and the one that
  // called it, because the innermost is often a helper; else the library that is farthest from the driver. "" without a
  // stack.
  enum class Lines { shown, left_out };  // left out, a name stays the same where code is inserted above it
  std::string caller(std::uint64_t stack, Lines lines = Lines::shown);
  // Whether the program is Python, and its own functions are in no stack.
  bool lacks_python() const;
  // Files whose functions have no names, and why (symbols.h); of stacks that were asked for.
  const std::map<std::string, std::string> &unnamed() const { return symbols_.unnamed(); }
  // The library that asked for the memory: the innermost that is none of the driver's and the runtime's.
  std::string library(std::uint64_t stack);

 private:
  struct Place {  // a `frame` record
    std::uint64_t module = 0, offset = 0;
    StackFrame python;
    std::vector<StackFrame> named;     // by the log
    std::vector<StackFrame> resolved;  // of a native one; empty: not yet
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
