// The Python calls of the calling thread, where CPython 3.9 to 3.14 is in the process.
// Layer: events (a leaf). Threads: any; each reads its own calls, which nobody else changes.
//
// The calls are read from the interpreter's memory without its lock: most bindings give it up before they call CUDA,
// and to wait for it here could block a program that would not block by itself. Every read is one that the kernel
// checks (process_vm_readv), so that an interpreter with another layout gives no frames, and no crash.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

namespace ration::events {

class LoadedModules;

struct PythonFrame {
  std::string function;  // qualified from Python 3.11 on
  std::string file;
  unsigned line = 0;  // 0: unknown
  bool operator<(const PythonFrame &other) const {
    return std::tie(file, line, function) < std::tie(other.file, other.line, other.function);
  }
};

class PythonFrames {
 public:
  static constexpr unsigned kDeepest = 128;  // outer calls are left out

  // Looks for an interpreter among `modules`, if there was none before.
  void find_interpreter(const LoadedModules &modules);
  // The calling thread's, innermost first; false: it has none, or none that can be read.
  bool read(std::vector<PythonFrame> &frames) const;
  // Whether code is the interpreter's own, which the Python calls stand for.
  bool is_interpreter(std::uintptr_t code) const;

 private:
  class Interpreter;
  std::shared_ptr<Interpreter> interpreter_;
};

}  // namespace ration::events
