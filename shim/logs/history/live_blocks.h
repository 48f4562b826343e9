// The live blocks of a log, as of the record read last. All readers of logs use this class to track them. Layer: logs.
// Threads: none of its own.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "logs/reader/names.h"
#include "logs/reader/record.h"

namespace ration::logs {

struct LiveBlock {
  std::uint64_t address = 0;  // the handle if it is an array or physical memory
  std::uint64_t bytes = 0, requested = 0;
  std::uint64_t stream = 0, slab = 0, stack = 0;  // 0: none
  std::uint64_t seq = 0, ts_ns = 0;               // of the block's `alloc`
  std::uint32_t device = 0;
  std::uint32_t api = 0, kind = 0;  // numbers from BlockNames
  bool is_charged = true;
};

// Handles of arrays and handles of physical memory may be equal, so the kind of a block is part of its identity.
struct BlockKey {
  std::uint64_t address;
  std::uint32_t kind;
  bool operator==(const BlockKey &) const = default;
};

// Converts records to keys and blocks.
class BlockNames {
 public:
  BlockKey key_of(const Record &record);
  LiveBlock block_of(const Record &alloc);

  const std::string &api_of(const LiveBlock &block) const { return names_.all()[block.api]; }
  const std::string &kind_of(const LiveBlock &block) const { return names_.all()[block.kind]; }
  // A number that no other live block has. Handles are mapped above all addresses (from 2^50 and from 2^51 on) but
  // below 2^53, up to which JavaScript's numbers are exact.
  std::uint64_t unique_address(const LiveBlock &block) const;

 private:
  Names names_;
};

// `Note`: the data that a reader stores with each block.
template <class Note>
class LiveBlocks : public BlockNames {
 public:
  struct Block : LiveBlock {
    Note note{};
  };

  // Processes a record. Only an `alloc` or a `free` begins or ends a block.
  void add(const Record &record) {
    forget();
    if (record.type == Record::Type::alloc) {
      begin(key_of(record), block_of(record));
    } else if (record.type == Record::Type::free) {
      end(key_of(record));
    }
  }
  void begin(const BlockKey &key, const LiveBlock &block) {
    forget();
    const auto [entry, is_new] = blocks_.try_emplace(key);
    if (!is_new) {
      ended_ = entry->second;
      has_ended_ = true;
    }
    begun_ = &entry->second;
    *begun_ = {block, {}};
  }
  void end(const BlockKey &key) {
    forget();
    if (const auto found = blocks_.find(key); found != blocks_.end()) {
      ended_ = found->second;
      has_ended_ = true;
      blocks_.erase(found);
    }
  }

  // Clears ended() and begun().
  void forget() {
    has_ended_ = false;
    begun_ = nullptr;
  }
  // The block that the last call ended or began; valid until the next call; nullptr: none. An `alloc` also ends a block
  // that was live at its address, because the record of that block's end was lost.
  const Block *ended() const { return has_ended_ ? &ended_ : nullptr; }
  Block *begun() { return begun_; }
  const Block *begun() const { return begun_; }

  std::uint64_t count() const { return blocks_.size(); }
  // Calls see(block) for every live block, in no particular order.
  template <class See>
  void each(See see) const {
    for (const auto &[key, block] : blocks_) {
      see(block);
    }
  }

 private:
  struct KeyHash {
    std::size_t operator()(const BlockKey &key) const noexcept {
      return std::hash<std::uint64_t>()(key.address ^ key.address >> 17U) ^ std::size_t{key.kind} << 56U;
    }
  };
  std::unordered_map<BlockKey, Block, KeyHash> blocks_;
  Block ended_;
  Block *begun_ = nullptr;
  bool has_ended_ = false;
};

struct NoNote {};

// The number at the beginning of a string such as "0x1f".
std::uint64_t number_of_hex(std::string_view text);

}  // namespace ration::logs
