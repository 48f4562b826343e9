// An allocation trace in memory, and its own text: `a ID BYTES` and `f ID` lines.
// Layer: the replay program. Threads: values, no shared state.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace ration::pool::replay {

struct Operation {
  std::uint32_t id;  // of the block, counted from 0 as blocks appear
  bool is_free;
  std::uint64_t bytes;  // of an allocation
};

struct Trace {
  std::vector<Operation> operations;
  std::uint32_t ids = 0;             // every id is below
  std::vector<std::uint64_t> names;  // by id: the number that the file gives to the block; empty: its id
  std::uint64_t peak_bytes = 0;      // requested bytes live at once, at most
  std::uint64_t peak_live = 0;       // blocks live at once, at most
  [[nodiscard]] std::uint64_t name_of(std::uint32_t id) const { return names.empty() ? id : names[id]; }
};

// What is wrong with a file, with its name and line.
struct TraceError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Follows what is live, so that a trace that no pool could serve is refused while it is read.
class TraceBuilder {
 public:
  // Both return what is wrong with the operation, which is then not part of the trace, or null. `name` may be any
  // number that no live block has.
  const char *allocate(std::uint64_t name, std::uint64_t bytes);
  const char *free(std::uint64_t name);
  // What was built; the builder is empty afterwards.
  Trace take();

 private:
  Trace trace_;
  std::unordered_map<std::uint64_t, std::uint32_t> ids_;  // by name
  std::vector<std::uint64_t> live_;                       // bytes by id, 0 where it is not live
  std::uint64_t bytes_ = 0;
  std::uint64_t blocks_ = 0;
};

// The trace in `text`. Throws TraceError: a line that is neither operation nor comment, an id that is allocated twice
// or freed while it is not live, blocks beyond what a pool can hold. `path` is for its messages only.
Trace parse_trace(const std::string &path, std::string_view text);

// The same from a file, plain or xz-compressed.
Trace read_trace(const std::string &path);

}  // namespace ration::pool::replay
