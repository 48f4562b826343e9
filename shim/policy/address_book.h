// Pointer -> block: what this process holds on its devices, for every pointer that it got through us.
// Layer: policy. Threads: any; sharded, no driver call under a lock.
//
// A block ends in three steps: begin_end, the driver's own free, finish_end. Between the first and the last the driver
// may already hand its address to another thread; that thread's insert waits, so that the log never shows one address
// with two owners.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "lock.h"
#include "policy/contexts.h"

namespace ration::policy {

struct Block {
  std::uint64_t size = 0;
  int device = 0;
  ContextRef context;
};
using AddressedBlock = std::pair<std::uint64_t, Block>;

class AddressBook {
 public:
  enum class Inserted {
    entered,
    context_gone,  // its context was destroyed meanwhile, and the block with it
  };
  // `displaced` gets a block that was still entered at this address: the driver gave the address out again, so it had
  // ended without our seeing how.
  Inserted insert(std::uint64_t address, const Block &block, std::optional<Block> &displaced);

  enum class Found { unknown, begun, ending_elsewhere };
  Found begin_end(std::uint64_t address, Block &block);
  // Begins the end of every block of `context` that is not ending already.
  std::vector<AddressedBlock> begin_end_of(const ContextRef &context);
  void finish_end(std::uint64_t address);
  // The driver refused: the block lives on.
  void cancel_end(std::uint64_t address);

 private:
  struct Entry {
    Block block;
    bool ending = false;
  };
  struct Shard {
    RankedMutex mutex{Rank::kAddressBook};
    std::unordered_map<std::uint64_t, Entry> entries GUARDED_BY(mutex);
  };
  static constexpr std::size_t kShards = 16;
  Shard &shard_of(std::uint64_t address) { return shards_[(address >> 21 ^ address >> 9) % kShards]; }

  Shard shards_[kShards];
};

}  // namespace ration::policy
