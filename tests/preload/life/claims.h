// What must be true of a log, of the simulated device and of the program itself at every step; each claim is answered
// with what is wrong, or empty. Layer: none. Threads: one. REQUIRES: contexts cost nothing, the device's memory is
// ours.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tests/preload/life/log_watch.h"

namespace preload {

class Claims {
 public:
  // `limits`: bytes that each device can give.
  Claims(const std::string &log, std::vector<std::uint64_t> limits) : watch_(log), limits_(std::move(limits)) {}

  std::uint64_t limit(int device) const { return limits_[static_cast<std::size_t>(device)]; }
  int devices() const { return static_cast<int>(limits_.size()); }
  bool is_live(std::uint64_t address) const { return watch_.live().contains(address); }
  unsigned context_of(std::uint64_t address) const { return watch_.live().at(address).context; }

  // What is live is `blocks` many; what the log says is held is what the device holds, within the limit.
  std::string hold(std::size_t blocks);
  // The log tells of it, and it is a block: on a granule, beside all others, no slab's own address.
  std::string handed_out(std::uint64_t address, std::uint64_t bytes, int device);
  // There was no hole and no room. `context`: the number that the log gives it, 0 where it holds nothing.
  std::string rightly_refused(unsigned context, int device, std::uint64_t bytes);

 private:
  LogWatch watch_;
  const std::vector<std::uint64_t> limits_;
};

}  // namespace preload
