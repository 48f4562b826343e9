// Keeps the holes in address order, in a B+ tree whose leaves are rows of sizes. Each page has an upper bound on the
// largest hole below it. Some blocks are in the tree too, with size 0, so that every address has an entry nearby.
// Layer: pool, a leaf (standard library only). Threads: none of its own; the caller locks. Owns: its pages.
//
// The leaves are in order but the entries within a leaf are not, so that nothing has to be shifted. Insertion keeps the
// leaves in order. A hole that grows downwards may come to start below its leaf's separator, which does no harm.
// Design: design/placement.md#a-tree-of-holes
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "pool/indexed_pool.h"
#include "pool/lanes.h"
#include "pool/node.h"

namespace ration::pool {

class HoleIndex {
 public:
  explicit HoleIndex(Nodes &nodes) : nodes_(nodes) {}
  HoleIndex(const HoleIndex &) = delete;
  HoleIndex &operator=(const HoleIndex &) = delete;
  ~HoleIndex() = default;

  // Ensures that the next add() needs no host memory; returns false if host memory has run out.
  [[nodiscard]] bool prepare() { return leaves_.prepare(2) && inners_.prepare(most_new_inners()); }
  // True if the next add() needs no host memory even without prepare().
  [[nodiscard]] bool is_prepared() const { return leaves_.has(2) && inners_.has(most_new_inners()); }
  // Like prepare(), for about `entries` entries.
  [[nodiscard]] bool reserve(std::size_t entries);

  // REQUIRES: prepare() has succeeded, and the node has no entry.
  void add(std::uint32_t node, std::uint64_t units);
  // REQUIRES, for every function below that takes a node: the node has an entry.
  void resize(std::uint32_t node, std::uint64_t units);
  // Like resize(), for a hole that does not grow.
  void shrink(std::uint32_t node, std::uint64_t units);
  // Turns the hole's entry into that of a block.
  void close(std::uint32_t node);
  void remove(std::uint32_t node);

  // Prefetches the cache lines that a change of the node's entry touches.
  void prefetch(std::uint32_t node) const {
    const Leaf &leaf = leaves_.at(nodes_.at(node).leaf());
    const std::uint32_t slot = nodes_.at(node).slot();
    __builtin_prefetch(&leaf.extent[slot]);
    __builtin_prefetch(&leaf.start[slot]);
    __builtin_prefetch(&leaf.parent);
  }

  enum class Side { kLow, kHigh };
  // Returns the tightest of the first `among` holes of at least `units`, counted from that side, or 0 if there is none.
  [[nodiscard]] std::uint32_t find(std::uint64_t units, Side side, std::uint32_t among = 1);
  // Returns a hole for several blocks of `units` each, or 0. Of roughly the `among` lowest holes that fit, it takes the
  // one in which such blocks leave the smallest remainder; the more blocks fit, the larger a remainder it tolerates.
  // The largest hole of all is used only if no other fits.
  [[nodiscard]] std::uint32_t find_tiled(std::uint64_t units, std::uint32_t among);
  // The cached hole, or 0. find() has returned this hole several times from the high side for requests of
  // cached_units() or more, and would return it again for any such request that fits into it. find() reads this hole's
  // size from its node, not from the index.
  // Design: design/placement.md#the-cached-hole
  [[nodiscard]] std::uint32_t cached_hole() const { return cached_hole_; }
  [[nodiscard]] std::uint64_t cached_units() const { return static_cast<std::uint64_t>(cached_extent_); }
  // A node that has an entry and starts at the unit, or lies a few nodes below it; 0 if there is none.
  [[nodiscard]] std::uint32_t find_before(std::uint64_t unit) const;
  // The size of the largest hole, in units.
  [[nodiscard, gnu::cold, gnu::noinline]] std::uint64_t largest() const;

  [[nodiscard]] std::size_t entries() const { return entries_; }
  [[nodiscard]] std::size_t host_bytes() const { return leaves_.host_bytes() + inners_.host_bytes(); }
  // Describes the first violated invariant of the index itself; empty if there is none. If `unflushed_units` is not 0,
  // the index still has that size for the cached hole.
  [[nodiscard]] std::string check(std::uint64_t unflushed_units = 0) const;

 private:
  // Holes of kCap units (1 TiB) or more are oversized and are entered with size kCap. An address space holds few of
  // them.
  static constexpr std::int32_t kCap = INT32_MAX;
  static constexpr std::uint32_t kSlots = lanes::kLanes;
  static constexpr std::uint32_t kOften = 4;    // a hole that is found this many times in a row becomes the cached one
  static constexpr std::uint32_t kSparse = 4;   // a leaf with at most this many entries is sparse
  static constexpr std::uint32_t kJoined = 12;  // most entries of a joined leaf, so that it does not split at once
  static_assert(kSlots == 1U << Node::kSlotBits);

  struct alignas(16) Leaf {
    lanes::Row<std::int32_t> extent;  // in units, at most kCap; 0: a block, or no entry
    lanes::Row<std::uint32_t> start;  // low half of the unit number; unused for blocks
    lanes::Row<std::uint32_t> node;
    std::uint32_t parent;  // number of an inner page
    std::uint32_t index;   // position in the parent
    union {
      std::uint32_t next_spare;
      std::uint32_t count;
    };
  };

  static constexpr std::uint32_t kChildren = 4 * lanes::kLanes;
  struct Inner {
    // Upper bounds of the extents below each child; 0 if there is no child. When a hole grows, all bounds on its path
    // are raised. When it shrinks, only its leaf's bound is lowered, and removal lowers none. A bound that is too high
    // is lowered by the next search that finds nothing below it.
    alignas(16) std::array<std::int32_t, kChildren> largest;
    std::array<std::uint64_t, kChildren> from;   // lower bounds of the inserted entries; the first is unused
    std::array<std::uint32_t, kChildren> child;  // leaves or inner pages
    std::uint32_t parent;                        // 0: this is the root
    std::uint32_t index;                         // position in the parent
    union {
      std::uint32_t next_spare;
      std::uint32_t count;
    };
    bool above_leaves;
  };

  static std::int32_t capped(std::uint64_t units) {
    return units < static_cast<std::uint64_t>(kCap) ? static_cast<std::int32_t>(units) : kCap;
  }
  static std::uint64_t at_least(const Inner &inner, std::int32_t extent);
  static std::int32_t largest_in(const Inner &inner);
  static std::uint32_t child_around(const Inner &inner, std::uint64_t unit);
  // The number of the leaf for the unit, and the number of the leaf before a given one (0 if that one is the first).
  [[nodiscard]] std::uint32_t leaf_around(std::uint64_t unit) const;
  [[nodiscard]] std::uint32_t leaf_before(std::uint32_t leaf_number) const;
  // Describes the oversized holes: the largest size, and the lowest and the highest hole that fit.
  struct OversizedHoles {
    std::uint64_t largest = 0;
    std::uint32_t lowest = 0;
    std::uint32_t highest = 0;
  };
  [[nodiscard, gnu::cold, gnu::noinline]] OversizedHoles oversized_holes(std::uint64_t units) const;
  void collect_oversized(const Inner &inner, std::uint64_t units, OversizedHoles &oversized) const;

  void lift(const Leaf &leaf, std::int32_t extent);
  void lift_above(const Inner &inner, std::int32_t extent);
  struct Search;
  void lower(Inner &inner, std::uint32_t index);
  bool search(Inner &inner, Search &search);
  std::uint32_t find_highest(std::int32_t extent);
  std::uint32_t search_from_root(Search search);
  void raise_cached_hole(std::uint32_t node, std::int32_t extent);
  [[nodiscard]] std::int32_t largest_below(const Inner &inner, std::int32_t known) const;
  static bool search(const Leaf &leaf, Search &search);
  struct Tiling;
  bool tile(Inner &inner, Tiling &tiling);
  std::int32_t lower_to_largest(Inner &inner);
  static bool tile(const Leaf &leaf, Tiling &tiling);
  Leaf &set(std::uint32_t node, std::int32_t extent);
  void place(std::uint32_t leaf_number, std::uint32_t node, std::int32_t extent);
  std::uint32_t fresh_leaf();
  std::uint32_t fresh_inner(bool above_leaves);
  [[gnu::noinline]] void start_root();
  // Returns the number of the new leaf.
  [[gnu::noinline]] std::uint32_t split(std::uint32_t leaf_number);
  void split_inner(std::uint32_t number);
  [[gnu::noinline]] void tidy(std::uint32_t leaf_number);
  void join(Inner &parent, std::uint32_t lower);
  void adopt(Inner &inner, std::uint32_t from_index);
  void insert_child(Inner &inner, std::uint32_t index, std::uint64_t from, std::int32_t largest, std::uint32_t child);
  void append(Inner &from, std::uint32_t first, Inner &to);
  void erase_child(Inner &inner, std::uint32_t index);
  void drop_joined(Inner &parent, std::uint32_t lower);
  // The largest number of inner pages that one add() can create: it may split one page on each level and add a root,
  // but if the root has room, it splits only pages below the root.
  [[nodiscard]] std::uint32_t most_new_inners() const {
    return root_ != 0 && inners_.at(root_).count < kChildren ? height_ - 1 : height_ + 1;
  }
  void tidy_inner(Inner &inner);
  struct Seen {
    std::uint64_t unflushed_units;
    std::size_t entries = 0;
  };
  [[nodiscard]] std::string check_inner(const Inner &inner, std::uint32_t height, Seen &seen) const;
  [[nodiscard]] std::string check_leaf(std::uint32_t number, Seen &seen) const;

  Nodes &nodes_;
  std::uint32_t root_ = 0;
  std::uint32_t height_ = 0;  // levels of inner pages
  std::size_t entries_ = 0;
  std::uint32_t last_found_ = 0;   // last result from the high side
  std::uint32_t times_found_ = 0;  // how many times in a row it was found
  // See cached_hole() and cached_units().
  std::uint32_t cached_hole_ = 0;
  std::int32_t cached_extent_ = 0;
  // The leaf numbers that a node can store suffice for five million leaves and so for some fifty million holes. With
  // more holes, the index reports that host memory has run out.
  static constexpr std::size_t kLeafUnit = 16;
  static_assert(std::size_t{Node::kLargestLeaf} * kLeafUnit / sizeof(Leaf) > 5'000'000);
  IndexedPool<Leaf, kLeafUnit, Node::kLargestLeaf> leaves_;
  IndexedPool<Inner, 8, UINT32_MAX, 1> inners_;  // grows only by the pages that it needs, as each is 1 KiB
};

}  // namespace ration::pool
