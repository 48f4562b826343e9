// Records the allocations and frees of a program as a trace.
// Layer: test shapes. Threads: none of its own.
#pragma once

#include <cstdint>
#include <vector>

#include "logs/replay/trace.h"

namespace ration::shapes {

class Recorder {
 public:
  using Id = std::uint32_t;

  // REQUIRES: bytes > 0.
  Id allocate(std::uint64_t bytes);
  // REQUIRES: id is live.
  void free(Id id);
  void free(const std::vector<Id> &ids) {
    for (const Id id : ids) free(id);
  }
  // Allocates a block and frees it at once, like a workspace.
  void pass(std::uint64_t bytes) { free(allocate(bytes)); }
  [[nodiscard]] std::uint64_t bytes(Id id) const { return live_[id]; }

  [[nodiscard]] pool::replay::Trace take() { return trace_.take(); }

 private:
  pool::replay::TraceBuilder trace_;
  std::vector<std::uint64_t> live_;  // bytes by id, 0 if the id is not live
  std::vector<Id> spare_;
};

}  // namespace ration::shapes
