// The holes in order of their addresses, with a bound on the largest one below each page: a B+ tree whose leaves are
// rows of sizes. Some blocks are entries too, of size 0, so that from any address an entry is near.
// Layer: pool, a leaf (standard library only). Threads: none of its own; the caller locks. Owns: its pages.
//
// The order is between leaves; within a leaf there is none, so that nothing is shifted. It is kept where entries come
// in. A hole that grows downwards may then reach below what its leaf stands for; nothing depends on that.
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

  // Makes sure that the next add() needs no memory from the host; false when the host has none.
  [[nodiscard]] bool prepare() {
    return leaves_.prepare(2) && (full_inners_ == 0 ? root_ != 0 || inners_.prepare(1) : inners_.prepare(height_ + 1));
  }
  // The same for about so many entries.
  [[nodiscard]] bool reserve(std::size_t entries);

  // REQUIRES: prepare(), and a node without an entry.
  void add(std::uint32_t node, std::uint64_t granules);
  // REQUIRES of all: a node with an entry.
  void resize(std::uint32_t node, std::uint64_t granules);
  // The same where it does not grow.
  void shrink(std::uint32_t node, std::uint64_t granules);
  // It is a block from now on.
  void close(std::uint32_t node);
  void remove(std::uint32_t node);

  // What a change of the node's entry will touch.
  void prefetch(std::uint32_t node) const {
    const Leaf &leaf = leaves_.at(nodes_.at(node).leaf());
    const std::uint32_t slot = nodes_.at(node).slot();
    __builtin_prefetch(&leaf.extent[slot]);
    __builtin_prefetch(&leaf.start[slot]);
    __builtin_prefetch(&leaf.parent);
  }

  enum class Side { kLow, kHigh };
  // A hole of at least so many granules, 0 where there is none: the snuggest of the first `among` from that side.
  [[nodiscard]] std::uint32_t find(std::uint64_t granules, Side side, std::uint32_t among = 1);
  // A hole of at least so many granules for some of several blocks of that size, 0 where there is none: of the `among`
  // lowest, or a few more, the one that they fill with the least left over (more is forgiven where more of them fit).
  // The largest hole of all is taken only where no other fits.
  [[nodiscard]] std::uint32_t find_tiled(std::uint64_t granules, std::uint32_t among);
  // The hole that find() answered from above several times, for top_granules() or more, and would answer again wherever
  // it is large enough; 0 where none is known. Its size in here is not looked at.
  [[nodiscard]] std::uint32_t top() const { return top_; }
  [[nodiscard]] std::uint64_t top_granules() const { return static_cast<std::uint64_t>(top_extent_); }
  // An entry that starts at or below the granule, few nodes before it; 0 where none is known.
  [[nodiscard]] std::uint32_t find_before(std::uint64_t granule) const;
  // In granules.
  [[nodiscard, gnu::cold, gnu::noinline]] std::uint64_t largest() const;

  [[nodiscard]] std::size_t entries() const { return entries_; }
  [[nodiscard]] std::size_t host_bytes() const { return leaves_.host_bytes() + inners_.host_bytes(); }
  // The first thing that is wrong with the index itself, or empty. The topmost hole's size may be in here as
  // `told_granules` where that is not 0.
  [[nodiscard]] std::string check(std::uint64_t told_granules = 0) const;

 private:
  // Sizes of kCap granules (1 TiB) and more look alike here: an address space holds few such holes.
  static constexpr std::int32_t kCap = INT32_MAX;
  static constexpr std::uint32_t kSlots = lanes::kLanes;
  static constexpr std::uint32_t kOften = 4;    // answers from above that make a hole the topmost
  static constexpr std::uint32_t kSparse = 4;   // entries of a leaf
  static constexpr std::uint32_t kJoined = 12;  // leaves room: the next insertion must not split again
  static_assert(kSlots == 1U << Node::kSlotBits);

  struct alignas(16) Leaf {
    lanes::Row<std::int32_t> extent;  // granules, at most kCap; 0: a block, or no entry
    lanes::Row<std::uint32_t> start;  // low half of the granule number; blocks have none
    lanes::Row<std::uint32_t> node;
    std::uint32_t parent;  // an inner page
    std::uint32_t index;   // in its parent
    union {
      std::uint32_t next_spare;
      std::uint32_t count;
    };
  };

  static constexpr std::uint32_t kChildren = 4 * lanes::kLanes;
  struct Inner {
    // No extent below is larger; 0 where no child is. What grows raises it. What shrinks lowers it above its leaf, and
    // what goes nowhere: the rest is left to the next search that looks there in vain, one vain look for each.
    alignas(16) std::array<std::int32_t, kChildren> largest;
    std::array<std::uint64_t, kChildren> from;   // entries that came in below are not before it; the first is not read
    std::array<std::uint32_t, kChildren> child;  // leaves or inner pages
    std::uint32_t parent;                        // 0: the root
    std::uint32_t index;                         // in its parent
    union {
      std::uint32_t next_spare;
      std::uint32_t count;
    };
    bool above_leaves;
  };

  static std::int32_t capped(std::uint64_t granules) {
    return granules < static_cast<std::uint64_t>(kCap) ? static_cast<std::int32_t>(granules) : kCap;
  }
  static std::uint64_t at_least(const Inner &inner, std::int32_t extent);
  static std::int32_t largest_in(const Inner &inner);
  static std::uint32_t child_around(const Inner &inner, std::uint64_t granule);
  // Numbers of leaves; 0: there is none before.
  [[nodiscard]] std::uint32_t leaf_around(std::uint64_t granule) const;
  [[nodiscard]] std::uint32_t leaf_before(std::uint32_t leaf_number) const;
  // A hole of kCap granules or more: the lowest or the highest that is large enough, and how large the largest is.
  struct Giants {
    std::uint64_t largest = 0;
    std::uint32_t lowest = 0;
    std::uint32_t highest = 0;
  };
  [[nodiscard, gnu::cold, gnu::noinline]] Giants giants(std::uint64_t granules) const;
  void look_for_giants(const Inner &inner, std::uint64_t granules, Giants &giants) const;

  void lift(const Leaf &leaf, std::int32_t extent);
  void lift_above(const Inner &inner, std::int32_t extent);
  struct Search;
  void lower(Inner &inner, std::uint32_t index);
  bool search(Inner &inner, Search &search);
  std::uint32_t find_highest(std::int32_t extent);
  std::uint32_t search_from_root(Search search);
  void raise_top(std::uint32_t node, std::int32_t extent);
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
  [[gnu::noinline]] void split(std::uint32_t leaf_number);
  void split_inner(std::uint32_t number);
  [[gnu::noinline]] void tidy(std::uint32_t leaf_number);
  void join(Inner &parent, std::uint32_t lower);
  void adopt(Inner &inner, std::uint32_t from_index);
  void open_child(Inner &inner, std::uint32_t index, std::uint64_t from, std::int32_t largest, std::uint32_t child);
  void append(Inner &from, std::uint32_t first, Inner &to);
  void drop_child(Inner &inner, std::uint32_t index);
  void drop_joined(Inner &parent, std::uint32_t lower);
  void tidy_inner(Inner &inner);
  void count_full(const Inner &inner, std::uint32_t count_before);
  struct Seen {
    std::uint64_t told_granules;
    std::size_t entries = 0;
    std::uint32_t full_inners = 0;
  };
  [[nodiscard]] std::string check_inner(const Inner &inner, std::uint32_t height, Seen &seen) const;
  [[nodiscard]] std::string check_leaf(std::uint32_t number, Seen &seen) const;

  Nodes &nodes_;
  std::uint32_t root_ = 0;
  std::uint32_t height_ = 0;  // levels of inner pages
  std::uint32_t full_inners_ = 0;
  std::size_t entries_ = 0;
  std::uint32_t last_found_ = 0;   // from above
  std::uint32_t times_found_ = 0;  // one behind the other
  // As top() says.
  std::uint32_t top_ = 0;
  std::int32_t top_extent_ = 0;
  // As many as a node can number: five million, which hold some fifty million holes. With more the host counts as out
  // of memory.
  static constexpr std::size_t kLeafUnit = 16;
  static_assert(std::size_t{Node::kLargestLeaf} * kLeafUnit / sizeof(Leaf) > 5'000'000);
  IndexedPool<Leaf, kLeafUnit, Node::kLargestLeaf> leaves_;
  IndexedPool<Inner, 8, UINT32_MAX, 1> inners_;  // one at a time: most pools need a single one
};

}  // namespace ration::pool
