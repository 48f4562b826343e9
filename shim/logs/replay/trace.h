// An allocation trace in memory.
// Layer: logs. Threads: values, no shared state.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <vector>

namespace ration::pool::replay {

struct Operation {
  std::uint32_t id;  // id of the block; blocks are numbered from 0 in order of appearance
  bool is_free;
  std::uint64_t bytes;  // of an allocation only
};

struct Trace {
  std::vector<Operation> operations;
  std::uint32_t ids = 0;             // number of ids
  std::vector<std::uint64_t> names;  // by id: the block's number in the file; empty: the number is the id
  std::uint64_t peak_bytes = 0;      // maximum of live requested bytes
  std::uint64_t peak_live = 0;       // maximum of live blocks
  [[nodiscard]] std::uint64_t name_of(std::uint32_t id) const { return names.empty() ? id : names[id]; }
};

// An error in a file; the message has the file's name and the line.
struct TraceError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Tracks live blocks, so that a trace that no pool can serve is rejected while it is being read.
class TraceBuilder {
 public:
  // Both functions return null, or an error, in which case the operation is not added to the trace. `name`: any number
  // that no other live block has.
  const char *allocate(std::uint64_t name, std::uint64_t bytes);
  const char *free(std::uint64_t name);
  // Returns the trace and resets the builder.
  Trace take();

 private:
  Trace trace_;
  std::unordered_map<std::uint64_t, std::uint32_t> ids_;  // by name
  std::vector<std::uint64_t> live_;                       // bytes by id; 0 if the block is not live
  std::uint64_t bytes_ = 0;
  std::uint64_t blocks_ = 0;
};

}  // namespace ration::pool::replay
