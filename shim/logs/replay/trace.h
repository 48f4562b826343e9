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
  std::uint32_t id;  // the id of the block; blocks are numbered from 0 in order of appearance
  bool is_free;
  std::uint64_t bytes;  // used only by an allocation
};

struct Trace {
  std::vector<Operation> operations;
  std::uint32_t ids = 0;             // the number of ids
  std::vector<std::uint64_t> names;  // by id: the block's number in the file; empty: the number is the id
  std::uint64_t peak_bytes = 0;      // the maximum of live requested bytes
  std::uint64_t peak_live = 0;       // the maximum number of live blocks
  [[nodiscard]] std::uint64_t name_of(std::uint32_t id) const { return names.empty() ? id : names[id]; }
};

// An error in a file; the message contains the file's name and the line number.
struct TraceError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Tracks live blocks, so that a trace that no pool can serve is rejected while it is being read.
class TraceBuilder {
 public:
  // Both functions return null on success. Otherwise they return an error and do not add the operation to the trace.
  // `name`: any number that no other live block has.
  const char *allocate(std::uint64_t name, std::uint64_t bytes);
  const char *free(std::uint64_t name);
  // Returns the trace and resets the builder.
  Trace take();

 private:
  Trace trace_;
  std::unordered_map<std::uint64_t, std::uint32_t> ids_;  // by name
  std::vector<std::uint64_t> live_;                       // the bytes of each block by id; 0 if the block is not live
  std::uint64_t bytes_ = 0;
  std::uint64_t blocks_ = 0;
};

}  // namespace ration::pool::replay
