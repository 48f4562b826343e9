// A place in a program, as shown to a reader of stacks. Layer: logs. Values.
#pragma once

#include <string>

namespace ration::logs {

struct StackFrame {
  std::string function;    // demangled; an offset if no name is known
  std::string file;        // source file; empty: unknown
  unsigned line = 0;       // 0: unknown
  std::string library;     // the owner: "cuDNN", a Python package, a library's file name, or kTheProgram
  std::string module;      // path of the file that contains the code; empty: Python, or none
  bool is_python = false;  // false: native
};

inline constexpr const char *kTheProgram = "the program";

// One line such as "function (file.py:12)".
std::string place_of(const StackFrame &frame);

}  // namespace ration::logs
