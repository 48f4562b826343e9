// Whether other threads move memory of a device while one searches for some. Layer: policy. Threads: one.
#pragma once

#include <cstdint>

#include "policy/block_pool/backing.h"

namespace ration::policy {

// Returns the bytes that the limits and the device leave for more pieces. Asks the driver.
std::uint64_t untaken_bytes(Contexts &contexts, const DevicePool &device);

// Created before a search. While memory moves from one pool to another, it is in neither, so that the search misses it.
// When it has arrived, it may serve the request.
class Movement {
 public:
  Movement(const PoolParts &parts, const PoolCall &call) : parts_(parts), call_(call), finished_(finished_calls()) {}

  // Whether the search may have missed memory: enough for the request is unused, and another call has moved memory, or
  // may be moving some now.
  bool may_have_hidden_memory() const noexcept;

 private:
  // The number of allocations and frees on the device that have finished, in every mode.
  std::uint64_t finished_calls() const;
  bool has_other_calls() const;

  const PoolParts &parts_;
  const PoolCall &call_;
  const std::uint64_t finished_;
};

}  // namespace ration::policy
