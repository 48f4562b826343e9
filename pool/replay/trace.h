// An allocation trace in memory: `a ID BYTES` and `f ID` lines, plain or xz-compressed.
// Layer: the replay program. Threads: values, no shared state.
#pragma once

#include <cstdint>
#include <istream>
#include <stdexcept>
#include <string>
#include <vector>

namespace ration::pool::replay {

struct Operation {
  std::uint32_t id;
  bool is_free;
  std::uint64_t bytes;  // of an allocation
};

struct Trace {
  std::vector<Operation> operations;
  std::uint32_t ids = 0;         // every id is below
  std::uint64_t peak_bytes = 0;  // requested bytes live at once, at most
  std::uint64_t peak_live = 0;   // blocks live at once, at most
};

// What is wrong with a file, with its name and line.
struct TraceError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Throws TraceError: no such file, not xz after all, a line that is neither operation nor comment, an id that is
// allocated twice or freed while it is not live.
Trace read_trace(const std::string &path);

}  // namespace ration::pool::replay
