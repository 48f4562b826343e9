// The blocks that live at a record of a log: the one book of them, which every reader of a log asks. Layer: logs.
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
  std::uint64_t address = 0;  // of an array or of physical memory: its handle
  std::uint64_t bytes = 0, requested = 0;
  std::uint64_t stream = 0, slab = 0, stack = 0;  // 0: none
  std::uint64_t seq = 0, ts_ns = 0;               // of its `alloc`
  std::uint32_t device = 0;
  std::uint32_t api = 0, kind = 0;  // of BlockNames
  bool is_charged = true;
};

// Handles of arrays and of physical memory are numbers of their own, so the kind is part of what names a block.
struct BlockKey {
  std::uint64_t address;
  std::uint32_t kind;
  bool operator==(const BlockKey &) const = default;
};

// Reads blocks from records.
class BlockNames {
 public:
  BlockKey key_of(const Record &record);
  LiveBlock block_of(const Record &alloc);

  const std::string &api_of(const LiveBlock &block) const { return names_.all()[block.api]; }
  const std::string &kind_of(const LiveBlock &block) const { return names_.all()[block.kind]; }
  // A number that no other block has at the same time. Handles are put above all addresses (2^50 and 2^51), and stay
  // below 2^53, which JavaScript has exactly.
  std::uint64_t unique_address(const LiveBlock &block) const;

 private:
  Names names_;
};

// `Note`: what a reader keeps with each block.
template <class Note>
class LiveBlocks : public BlockNames {
 public:
  struct Block : LiveBlock {
    Note note{};
  };

  // Takes an `alloc` or a `free`; other records end and begin nothing.
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

  // Nothing has ended or begun.
  void forget() {
    has_ended_ = false;
    begun_ = nullptr;
  }
  // Of the last call, until the next one; nullptr: none. An `alloc` ends the block that was at its address, too: the
  // record of its end was lost.
  const Block *ended() const { return has_ended_ ? &ended_ : nullptr; }
  Block *begun() { return begun_; }
  const Block *begun() const { return begun_; }

  std::uint64_t count() const { return blocks_.size(); }
  // `see(block)`, in no order.
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

// The number of "0x1f", as far as it is one.
std::uint64_t number_of_hex(std::string_view text);

}  // namespace ration::logs
