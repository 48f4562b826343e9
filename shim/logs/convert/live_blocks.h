// The blocks that live at a record of a log. Layer: logs. Threads: none of its own.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>

#include "logs/reader/record.h"

namespace ration::logs {

struct LiveBlock {
  std::size_t device = 0;
  std::string address;  // as the log has it
  std::string kind, api;
  std::uint64_t bytes = 0, requested = 0;
  std::uint64_t thread = 0, stream = 0, slab = 0, stack = 0;  // 0: none
  std::uint64_t seq = 0;                                      // of its `alloc`
  bool charged = true;

  // A number that no other block has at the same time. Handles of arrays and of physical memory are numbers of their
  // own, so they are put above all addresses (2^50 and 2^51), and stay below 2^53, which JavaScript has exactly.
  [[nodiscard]] std::uint64_t unique_address() const;
};

class LiveBlocks {
 public:
  // REQUIRES: an `alloc`. The reference holds until the next call.
  const LiveBlock &add(const Record &record);
  // The block that a `free` ends; also the one at whose address an `alloc` puts another, because the record of its end
  // was lost. Nothing: there is none.
  std::optional<LiveBlock> remove(const Record &record);

  // By no order.
  const std::unordered_map<std::string, LiveBlock> &all() const { return blocks_; }

 private:
  std::unordered_map<std::string, LiveBlock> blocks_;  // by address and kind
};

// The number of "0x1f".
std::uint64_t number_of_hex(std::string_view text);

}  // namespace ration::logs
