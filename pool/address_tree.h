// Every block and hole in address order, with the largest hole known below each page: a B+ tree.
// Layer: pool, a leaf (standard library only). Threads: none of its own; the caller locks.
// Owns: its pages, which it keeps until it is destroyed. Why a tree and no hash: interior pointers must be answered,
// and one descent also yields both neighbours, so that a block costs 16 bytes and no links.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "pool/granule.h"
#include "pool/page_stock.h"

namespace ration::pool {

class AddressTree {
 public:
  static constexpr std::uint32_t kSlots = 32;
  static constexpr std::uint32_t kMaximumHeight = 16;  // a root splits only when full: 16^16 insertions

  // An entry's size in granules, above a mark of its owner; for two slots the larger word has the larger size.
  static constexpr unsigned kMarkBits = 24;
  static constexpr std::uint64_t kMarkMask = (std::uint64_t{1} << kMarkBits) - 1;

  struct Page {
    std::array<Address, kSlots> address;  // leaf: where the entry starts; inner: where the first one below does
    std::array<std::uint64_t, kSlots>
        word;             // leaf: size (0 = guard) and mark; inner: the size of the largest hole below
    std::uint32_t holes;  // leaf: bit i set where entry i is free; inner: all set
    std::uint32_t count;
  };
  struct InnerPage : Page {
    std::array<Page *, kSlots> child;
  };
  static_assert(sizeof(Page) <= std::size_t{64} * (kSlots / 2), "a half-filled page still costs <= 64 bytes a block");
  static_assert(kMaximumBytes >> kGranuleShift <= ~std::uint64_t{0} >> kMarkBits, "every size fits above the mark");

  // A place in the tree. Valid until the next insert or erase to its left, or in its own page.
  class Position {
   public:
    Position() = default;
    Position(const Position &other) { *this = other; }
    Position &operator=(const Position &other);

    [[nodiscard]] Address address() const { return leaf().address[slot()]; }
    [[nodiscard]] std::uint64_t granules() const { return leaf().word[slot()] >> kMarkBits; }
    [[nodiscard]] bool is_hole() const { return (leaf().holes >> slot() & 1U) != 0; }
    // A guard keeps the start of a slab from being handed out and two slabs from coalescing.
    [[nodiscard]] bool is_guard() const { return granules() == 0; }
    // The owner's word about an entry, below 2^24; 0 on a new one. It stays through set().
    [[nodiscard]] std::uint32_t mark() const { return static_cast<std::uint32_t>(leaf().word[slot()] & kMarkMask); }
    void mark(std::uint32_t value) { leaf().word[slot()] = (leaf().word[slot()] & ~kMarkMask) | value; }

   private:
    friend class AddressTree;
    [[nodiscard]] Page &leaf() const { return *page_[depth_]; }
    [[nodiscard]] std::uint32_t slot() const { return slot_[depth_]; }

    std::array<Page *, kMaximumHeight> page_;
    std::array<std::uint32_t, kMaximumHeight> slot_;
    std::uint32_t depth_ = 0;  // index of the leaf's level; 0 is the root's
  };

  AddressTree() = default;
  AddressTree(const AddressTree &) = delete;
  AddressTree &operator=(const AddressTree &) = delete;
  ~AddressTree() = default;

  // Makes sure that the next `insertions` need no memory from the host; false when the host has none.
  [[nodiscard]] bool prepare_insert(std::uint32_t insertions = 1);
  // Room on the host for about this many entries, so that later insertions make no system call; false as above.
  [[nodiscard]] bool reserve(std::size_t entries);

  // The last entry that starts at or below `address`; false when there is none.
  bool find(Address address, Position &position) const;
  // The lowest / the highest hole of at least `granules`; false when no hole is that large.
  bool find_lowest_hole(std::uint64_t granules, Position &position) const;
  bool find_highest_hole(std::uint64_t granules, Position &position) const;
  bool next(Position &position) const;
  bool previous(Position &position) const;
  bool first(Position &position) const;

  // Puts a new entry where its address belongs. REQUIRES: prepare_insert(), and no entry of that address. Every
  // Position is invalid afterwards.
  void insert(Address address, std::uint64_t granules, bool hole);
  // The same right behind `position`, the only one that stays valid. REQUIRES as above; its successor starts later.
  void insert_after(Position &position, Address address, std::uint64_t granules, bool hole, std::uint32_t mark = 0);
  // Changes an entry in place; maxima follow.
  void set(Position &position, std::uint64_t granules, bool hole);
  // Positions to the left of it stay valid.
  void erase(const Position &position);
  // Joins pages that have become nearly empty around `address`. Every Position is invalid afterwards.
  void tidy(Address address);
  // True where tidy() would be worth its price: the position's leaf is sparse. REQUIRES: a valid position.
  [[nodiscard]] bool is_sparse(const Position &position) const;

  [[nodiscard]] std::uint64_t largest_hole() const;
  [[nodiscard]] std::size_t host_bytes() const { return leaves_.host_bytes() + inners_.host_bytes(); }
  // The first thing that is wrong with the tree itself, or empty.
  [[nodiscard]] std::string check() const;

 private:
  [[nodiscard]] bool is_leaf(std::uint32_t level) const { return level + 1 == height_; }
  static InnerPage &inner(Page &page) { return static_cast<InnerPage &>(page); }
  static const InnerPage &inner(const Page &page) { return static_cast<const InnerPage &>(page); }
  [[nodiscard]] static std::uint64_t largest_in(const Page &page);
  void give_page(Page *page, bool leaf);

  static void lift(const Position &position, std::uint32_t level, std::uint64_t was, std::uint64_t now);
  static void follow_first(const Position &position, std::uint32_t level);
  static void shift_in(Page &page, std::uint32_t slot, Address address, std::uint64_t word, bool hole);
  static void shift_in_child(InnerPage &page, std::uint32_t slot, Page &child);
  static void shift_out(Page &page, std::uint32_t slot, bool leaf);
  static void append(Page &to, const Page &from, std::uint32_t first_slot, bool leaf);
  void split_way_to(Address address);
  void split_child(InnerPage &parent, std::uint32_t slot, bool leaf);
  void join(InnerPage &parent, std::uint32_t slot, bool leaf);
  void remove_slot(const Position &position, std::uint32_t level, std::uint64_t was);
  [[nodiscard]] std::string check_page(const Page &page, std::uint32_t level) const;

  Page *root_ = nullptr;
  std::uint32_t height_ = 0;  // levels; 1 = the root is a leaf, 0 = empty
  PageStock<Page, 8> leaves_;
  PageStock<InnerPage, 2> inners_;
};

}  // namespace ration::pool
