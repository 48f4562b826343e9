// The Python calls of the calling thread, if the process contains CPython 3.9 to 3.14.
// Layer: events (a leaf). Threads: any; each reads its own calls, which nobody else changes.
//
// The calls are read from the interpreter's memory without holding its lock (the GIL). Most bindings release the GIL
// before they call CUDA, and waiting for it here could block a program that would not block by itself. Every read is
// checked by the kernel (process_vm_readv), so an interpreter with an unknown layout yields no frames but causes no
// crash.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

namespace ration::events {

class LoadedModules;

struct PythonFrame {
  std::string function;  // the qualified name from Python 3.11 on
  std::string file;
  unsigned line = 0;  // 0: unknown
  bool operator<(const PythonFrame &other) const {
    return std::tie(file, line, function) < std::tie(other.file, other.line, other.function);
  }
};

class PythonFrames {
 public:
  static constexpr unsigned kDeepest = 128;  // calls further out are left out

  // Looks for an interpreter among `modules` if none was found before.
  void find_interpreter(const LoadedModules &modules);
  // Reads the calling thread's frames, innermost first. Returns false if it has none or if they cannot be read.
  bool read(std::vector<PythonFrame> &frames) const;
  // True if an address is in the interpreter's own code. Python calls are logged in place of such native calls.
  bool is_interpreter(std::uintptr_t code) const;

 private:
  class Interpreter;
  std::shared_ptr<Interpreter> interpreter_;
};

}  // namespace ration::events
