// Invariants of a log, of the simulated device and of the program at every step. Each check returns an error, or "".
// Layer: none. Threads: one. REQUIRES: contexts cost nothing, and only this process uses the device.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tests/preload/life/log_watch.h"

namespace preload {

class Claims {
 public:
  // `limits`: the bytes that each device can provide.
  Claims(const std::string &log, std::vector<std::uint64_t> limits) : watch_(log), limits_(std::move(limits)) {}

  std::uint64_t limit(int device) const { return limits_[static_cast<std::size_t>(device)]; }
  int devices() const { return static_cast<int>(limits_.size()); }
  bool is_live(std::uint64_t address) const { return watch_.live().contains(address); }
  unsigned context_of(std::uint64_t address) const { return watch_.live().at(address).context; }

  // Checks that `blocks` blocks are live, and that the bytes held agree in log and device and are within the limit.
  std::string hold(std::size_t blocks);
  // Checks that the log has the block, which is granule-aligned, disjoint from all others, and not at a slab's address.
  std::string handed_out(std::uint64_t address, std::uint64_t bytes, int device);
  // Checks that there was neither a hole nor room. `context`: its number in the log, or 0 if it holds nothing.
  std::string rightly_refused(unsigned context, int device, std::uint64_t bytes);

 private:
  LogWatch watch_;
  const std::vector<std::uint64_t> limits_;
};

}  // namespace preload
