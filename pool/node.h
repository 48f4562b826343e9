// One node for each block and each hole. The nodes of a slab form a list in address order and tile it without gaps.
// Layer: pool, a leaf (standard library only). Threads: none of its own; the caller locks.
#pragma once

#include <cstdint>

#include "pool/indexed_pool.h"
#include "pool/unit.h"

namespace ration::pool {

// 24 bytes. The size is not stored: it is the next node's start minus this node's start.
struct Node {
  enum class Kind : std::uint32_t {
    kBlock,
    kHole,
    kSentinel,  // two in a slab: one of size 0 before all other nodes, and one after them
  };

  std::uint64_t packed;  // unit number; low 16 bits: a block's slack and flags, or a hole's record number in the bins
  std::uint32_t place;   // the entry in the hole index (leaf 0: none); low two bits: the kind
  std::uint32_t previous;
  std::uint32_t next;
  union {
    std::uint32_t next_spare;  // used by the indexed pool
    std::uint32_t birth;       // of a block: its stamp from the LifetimePredictor
  };

  static constexpr unsigned kUnitBits = 48;

  [[nodiscard]] std::uint64_t unit() const { return packed >> kWordBits; }
  void unit(std::uint64_t value) { packed = value << kWordBits | word(); }
  // In one member with the unit: both are read with one load, which would stall if the last store had written the word
  // alone.
  [[nodiscard]] std::uint16_t word() const { return static_cast<std::uint16_t>(packed); }
  void word(std::uint16_t value) { packed = (packed & ~kWordMask) | value; }
  [[nodiscard]] Address address() const { return unit() << kUnitShift; }
  [[nodiscard]] Kind kind() const { return static_cast<Kind>(place & kKindMask); }
  void kind(Kind value) { place = (place & ~kKindMask) | static_cast<std::uint32_t>(value); }
  [[nodiscard]] bool is_hole() const { return kind() == Kind::kHole; }
  [[nodiscard]] bool is_block() const { return kind() == Kind::kBlock; }

  // The bytes by which a block exceeds its request; all 512 bytes if the request was for 0 bytes.
  [[nodiscard]] std::uint32_t slack() const { return static_cast<std::uint32_t>(packed & kSlackMask); }
  // True if the program has freed the block but the device may still use it.
  [[nodiscard]] bool is_retired() const { return (packed & kRetired) != 0; }
  void retire() { packed |= kRetired; }
  // True if this range is neither a block of the program nor free: its memory is used elsewhere, or it has no memory.
  [[nodiscard]] bool is_withheld() const { return (packed & kWithheld) != 0; }
  void withhold() { packed = (packed & ~kWordMask) | kRetired | kWithheld; }
  // True if the block has a name in Pool::names_.
  [[nodiscard]] bool is_named() const { return (packed & kNamed) != 0; }
  void named() { packed |= kNamed; }
  [[nodiscard]] bool is_marked() const { return (packed & kMarked) != 0; }
  void mark(bool marked) { packed = marked ? packed | kMarked : packed & ~kMarked; }

  // 0 if the node has no entry.
  [[nodiscard]] std::uint32_t leaf() const { return place >> kLeafShift; }
  [[nodiscard]] std::uint32_t slot() const { return place >> kSlotShift & kSlotMask; }
  void entry(std::uint32_t leaf_number, std::uint32_t slot_number) {
    place = leaf_number << kLeafShift | slot_number << kSlotShift | (place & kKindMask);
  }

  static constexpr unsigned kSlotBits = 4;
  static constexpr std::uint32_t kLargestLeaf = (1U << (32 - 2 - kSlotBits)) - 1;

 private:
  static constexpr unsigned kWordBits = 64 - kUnitBits;
  static constexpr std::uint64_t kWordMask = (1U << kWordBits) - 1;
  static constexpr std::uint64_t kSlackMask = 2 * kUnitBytes - 1;
  static constexpr std::uint64_t kRetired = 2 * kUnitBytes;
  static constexpr std::uint64_t kNamed = 4 * kUnitBytes;
  static constexpr std::uint64_t kMarked = 8 * kUnitBytes;
  static constexpr std::uint64_t kWithheld = 16 * kUnitBytes;
  static constexpr unsigned kSlotShift = 2;
  static constexpr unsigned kLeafShift = kSlotShift + kSlotBits;
  static constexpr std::uint32_t kKindMask = (1U << kSlotShift) - 1;
  static constexpr std::uint32_t kSlotMask = (1U << kSlotBits) - 1;
};
static_assert(sizeof(Node) == 24);

using Nodes = IndexedPool<Node, 8>;

// The node's size in units. REQUIRES: the node is not the sentinel at a slab's end.
inline std::uint64_t size_of(const Nodes &nodes, std::uint32_t node) {
  return nodes.at(nodes.at(node).next).unit() - nodes.at(node).unit();
}

}  // namespace ration::pool
