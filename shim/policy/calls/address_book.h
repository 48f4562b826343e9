// Finds the block of every pointer that the process obtained from the driver through a hook.
// Layer: policy/calls. Threads: any; sharded, no driver call under a lock.
//
// A block ends in three steps: begin_end(), the driver's own free, and finish_end(). Between the first step and the
// last, the driver may already give the block's address to another thread. That thread's insert() waits, so the log
// never shows two owners of one address.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <utility>

#include "base/lock.h"
#include "events/event.h"
#include "policy/contexts/contexts.h"
#include "policy/driver_pools/stream_pools.h"

namespace ration::policy {

struct Block {
  std::uint64_t size = 0;
  int device = 0;
  ContextRef context;
  events::Kind kind = events::Kind::device;
  bool charged = true;
  StreamPools::PoolRef pool = nullptr;  // the driver's pool, which is charged as a whole
};
using AddressedBlock = std::pair<std::uint64_t, Block>;

// Design: design/modes.md#direct-frees
class AddressBook {
 public:
  enum class Inserted {
    entered,
    context_gone,  // the block's context has been destroyed, and the block with it
  };
  // Enters a block. `displaced` gets the block that was still entered at this address; that block must have ended
  // unseen, since the driver reused its address. The new block counts as ending until announce(), so that no thread
  // ends it before its record is written.
  Inserted insert(std::uint64_t address, const Block &block, std::optional<Block> &displaced);

  // Called after the record is written. False if the block's context is gone; the caller must then finish the end.
  [[nodiscard]] bool announce(std::uint64_t address) { return cancel_end(address); }

  enum class Found {
    unknown,           // not in the book, or this thread is inside the call that ends it
    begun,             // its end has begun, and the caller must finish or cancel that end
    ending_elsewhere,  // another thread is freeing it
  };
  // Waits while another thread is ending the block's whole context, because that end may still fail.
  Found begin_end(std::uint64_t address, Block &block);
  void finish_end(std::uint64_t address);
  // The live block that starts at `address`.
  std::optional<Block> find(std::uint64_t address);
  // Called when the driver refused the end; the block lives on. Returns false if its context is gone; the caller must
  // then finish the block's end.
  bool cancel_end(std::uint64_t address);

  // begin_end() and cancel_end() for all blocks of a context except those already ending. Neither needs host memory.
  void begin_end_of(const ContextRef &context) noexcept;
  void cancel_end_of(const ContextRef &context) noexcept;
  // Fills `batch` with blocks whose end this thread began together with that of `context`, and returns their number.
  // Each must be finished before the next batch is requested.
  using Batch = std::array<AddressedBlock, 32>;
  std::size_t begun_of(const ContextRef &context, Batch &batch) noexcept;

 private:
  struct Entry {
    Block block;
    const void *ender = nullptr;  // the thread that is ending it
    bool with_context = false;    // its end was begun together with its context's
  };
  struct Shard {
    RankedMutex mutex{Rank::kAddressBook};
    std::unordered_map<std::uint64_t, Entry> entries GUARDED_BY(mutex);
  };
  static constexpr std::size_t kShards = 256;  // so many because a shard that grows moves all its entries at once
  Shard &shard_of(std::uint64_t address) { return shards_[(address >> 21 ^ address >> 9) % kShards]; }

  Shard shards_[kShards];
};

}  // namespace ration::policy
