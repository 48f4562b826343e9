// Places blocks in slabs of device memory, in units of 512 bytes. A block is live, then perhaps retired (freed by
// the program while the device may still use it: occupied, no longer live), then a hole.
// Layer: pool, a leaf (standard library only: no CUDA, no I/O, no logging). Threads: none of its own; the caller locks.
// Called from: any hook. Never throws, calls an upstream or accesses device memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "pool/address_map.h"
#include "pool/hole_index.h"
#include "pool/lifetime_predictor.h"
#include "pool/node.h"
#include "pool/runs.h"
#include "pool/size_bins.h"
#include "pool/unit.h"
#include "pool/upstream.h"

namespace ration::pool {

struct Block {
  Address address;
  std::uint64_t bytes;      // as rounded to units
  std::uint64_t requested;  // as asked for
  std::uint64_t slab;       // its id
};

struct [[nodiscard]] AllocateOutcome {
  enum class Kind {
    kAllocated,
    kNoRoom,        // no hole is large enough; largest_free is set
    kNoHostMemory,  // no host memory for the metadata; nothing changed; largest_free may be too low
  };
  Kind kind;
  Block block;                 // kAllocated
  std::uint64_t largest_free;  // otherwise: bytes of the largest hole
  explicit operator bool() const { return kind == Kind::kAllocated; }
};

struct [[nodiscard]] FreeOutcome {
  enum class Kind { kFreed, kNotABlock, kTooLarge };
  Kind kind;
  std::uint64_t bytes;  // kFreed: of the block, as rounded
  explicit operator bool() const { return kind == Kind::kFreed; }
};

enum class [[nodiscard]] AddSlabOutcome{kAdded, kTooSmall, kTooLarge, kOverlaps, kNoHostMemory};

struct Statistics {
  std::uint64_t slab_bytes;     // of all slabs, without what is withheld
  std::uint64_t used_bytes;     // in live blocks, as rounded
  std::uint64_t retired_bytes;  // in retired blocks, as rounded
  std::uint64_t free_bytes;     // in holes
  std::uint64_t largest_hole;   // bytes; too low where a free had no host memory to index a larger one
  std::uint64_t blocks;         // live ones
  std::uint64_t retired_blocks;
  std::uint64_t holes;
  std::uint64_t slabs;
  std::uint64_t metadata_bytes;  // host memory of the metadata, spare capacity included
};

class Pool {
 public:
  // End of all slabs: no device address is wider than five-level paging allows.
  static constexpr Address kAddressEnd = ((Address{1} << Node::kUnitBits) - 1) << kUnitShift;

  Pool() = default;
  Pool(const Pool &) = delete;
  Pool &operator=(const Pool &) = delete;

  // O(log blocks), amortised: a search may fail once at each hole that shrank. GUARANTEES: succeeds whenever a hole is
  // at least as large as the request and the host has memory for a page of metadata; the address is a multiple of 512.
  // 0 bytes get a unit.
  AllocateOutcome allocate(std::uint64_t bytes) noexcept;
  // The outcome of an allocation that finds no hole.
  AllocateOutcome no_room() noexcept { return refusal(AllocateOutcome::Kind::kNoRoom); }
  // Whether the next allocate() needs no host memory: for callers that must not call malloc.
  [[nodiscard]] bool is_prepared() const noexcept {
    return nodes_.has(1) && blocks_.has(1) && bins_.has(kMostBinned) && index_.is_prepared() && unindexed_ == 0;
  }
  // Obtains what is_prepared() asks for, as far as the host has it.
  void prepare() noexcept;
  // Live -> hole. O(log blocks). Needs no host memory. Anything but the start of a live block changes nothing.
  FreeOutcome free(Address address) noexcept;
  // Live -> retired. O(log blocks). Needs no host memory. Anything but the start of a live block of at most `most`
  // bytes changes nothing.
  FreeOutcome retire(Address address, std::uint64_t most = UINT64_MAX) noexcept;
  // Retired -> hole. O(log blocks). Needs no host memory. Anything but the start of a retired block changes nothing.
  FreeOutcome reclaim(Address address) noexcept;
  // The live block that contains `address`. O(log blocks).
  [[nodiscard]] std::optional<Block> find(Address address) const noexcept;
  // Writes at most `count` live blocks that start at or above `from`, in address order; returns how many.
  // O(log blocks + nodes between them). To continue, start above the last one's address.
  std::size_t live_blocks(Address from, Block *blocks, std::size_t count) const noexcept;
  // The unique name of the live block that contains `address`; a block without a name gets `fresh`. 0: there is no such
  // block, or the host has no memory. Only named blocks take host memory for a name.
  std::uint64_t name(Address address, std::uint64_t fresh) noexcept;
  // Sets a caller's mark on the live block that contains `address`; it ends with the block. False: no such block.
  bool mark(Address address, bool marked) noexcept;
  [[nodiscard]] bool is_marked(Address address) const noexcept;
  // The slab that contains `address`, in a block or not. O(log slabs).
  [[nodiscard]] std::optional<Slab> slab_of(Address address) const noexcept;

  // The whole units of the slab become one hole; it never merges with that of an adjacent slab.
  AddSlabOutcome add_slab(const Slab &slab) noexcept;
  // Removes a wholly free slab; false where a block in it is live or retired, or where there is no such slab.
  bool remove_slab(std::uint64_t id) noexcept;
  // A slab without a live or retired block, if there is one. O(slabs).
  [[nodiscard]] std::optional<Slab> wholly_free_slab() const noexcept;
  [[nodiscard]] std::uint64_t free_bytes() const noexcept {
    return pool::bytes_of(usable_units_ - used_units_ - retired_units_);
  }
  [[nodiscard]] std::uint64_t retired_bytes() const noexcept { return pool::bytes_of(retired_units_); }
  [[nodiscard]] std::uint64_t used_bytes() const noexcept { return pool::bytes_of(used_units_); }
  // Whether there is one slab, and blocks may be placed in it without regard to those that left it.
  [[nodiscard]] bool is_in_one_piece() const noexcept {
    return regions_.size() == 1 && (live_count_ != 0 || retired_count_ == 0);
  }
  // Part of a hole, of whole units -> withheld: in no hole, in no block and in no sum, until restore(). False: the
  // range is not inside one hole, or the host has no memory; nothing changed. O(log blocks).
  bool withhold(Address address, std::uint64_t bytes) noexcept;
  // Withheld -> hole, from where a withheld range starts; returns its bytes, or 0: none starts there. O(log blocks).
  // Needs no host memory.
  std::uint64_t restore(Address address) noexcept;
  // Keeps the first `bytes` of a withheld range and makes a withheld range of its own of the rest. False: no withheld
  // range starts there, it is not longer, or the host has no memory.
  bool split_withheld(Address address, std::uint64_t bytes) noexcept;
  // Joins a withheld range to the one that ends where it starts; needs no host memory. REQUIRES: both start there.
  void join_withheld(Address address, Address next) noexcept;
  struct Hole {
    Address address = 0;
    std::uint64_t bytes = 0;
  };
  // Calls visit(hole) for each hole of the slab at `address`, in address order. REQUIRES: there is one.
  template <class Visit>
  void each_hole(Address address, Visit visit) const {
    const Region &region = *region_at(address);
    for (std::uint32_t at = region.begin; at != region.end; at = nodes_.at(at).next) {
      if (nodes_.at(at).is_hole()) visit(hole_of(at));
    }
  }
  // The hole that contains `address`; of no bytes: none does. O(log blocks).
  [[nodiscard]] Hole hole_around(Address address) const noexcept;
  // While a slab grows at its high end, blocks are placed from the low end of the lowest holes, so that what is free
  // lies at that end.
  void set_growing(bool growing) noexcept { growing_ = growing; }
  // Writes at most `count` slabs that start at or above `from`, in address order; returns how many.
  std::size_t slabs(Address from, Slab *slabs, std::size_t count) const noexcept;
  // The size of a slab that holds a request of `bytes`, if the slab starts on a unit.
  // REQUIRES: bytes <= kMaximumBytes.
  static constexpr std::uint64_t slab_bytes_for(std::uint64_t bytes) { return pool::bytes_of(units_of(bytes)); }

  // Whether some hole is at least so large.
  [[nodiscard]] bool has_hole(std::uint64_t bytes) noexcept {
    flush_cached_hole();
    return index_.largest() >= units_of(bytes);
  }
  // Whether the holes together are many times as large, so that one of them is, most likely.
  [[nodiscard]] bool has_ample_room(std::uint64_t bytes) const noexcept {
    return units_of(bytes) < (usable_units_ - used_units_ - retired_units_) / kAmple;
  }

  // Obtains the host memory for about this many blocks, so that allocations up to there make no system call.
  bool reserve(std::size_t blocks) noexcept;
  [[nodiscard]] Statistics statistics() noexcept;
  // The first violated invariant, or empty. O(blocks). Defined in tests/pool_checks, for tests alone.
  [[nodiscard]] std::string check_invariants() const;
  // In address order; likewise.
  [[nodiscard]] std::vector<Hole> withheld_ranges() const;

 private:
  struct Region {
    Slab slab;
    std::uint32_t begin;  // sentinels
    std::uint32_t end;
  };

  // Bins that an allocation may enter: that of the cached hole, whose size was not flushed, and that of the remainder.
  static constexpr std::size_t kMostBinned = 2;

  static constexpr std::uint64_t kAmple = 64;

  // One block in sixteen is in the index, as a start for the search of interior addresses.
  static constexpr bool is_index_sample(std::uint64_t unit) { return mixed(unit) >> 60 == 0; }

  struct Placement {
    std::uint32_t hole;  // 0: there is none
    bool low;            // at the hole's low end
  };
  [[nodiscard]] Placement cached_placement(std::uint64_t units) const noexcept;
  [[nodiscard]] Placement choose_hole(std::uint64_t units) noexcept;
  [[nodiscard, gnu::cold, gnu::noinline]] Placement choose_lowest(std::uint64_t units) noexcept;
  [[nodiscard, gnu::noinline]] Placement choose_in_run(std::uint64_t units) noexcept;
  [[nodiscard]] Placement choose_large(std::uint64_t units) noexcept;
  [[nodiscard]] Placement choose_tight(std::uint64_t units) noexcept;
  // The hole for the next block of a long run, whose last block is `before`.
  [[nodiscard]] std::uint32_t continue_run(std::uint32_t before, std::uint64_t units) noexcept;
  void record_lifetime(std::uint32_t block, std::uint64_t units) noexcept;
  [[gnu::cold, gnu::noinline]] AllocateOutcome refusal(AllocateOutcome::Kind kind) noexcept;
  std::uint32_t split_hole(const Placement &placement, std::uint64_t units, std::uint64_t left) noexcept;
  std::uint32_t take_whole_hole(std::uint32_t hole, std::uint64_t units) noexcept;
  std::uint32_t new_node(std::uint64_t unit, std::uint32_t previous, std::uint32_t next, Node::Kind kind) noexcept;
  void drop_node(std::uint32_t node) noexcept;
  // The block that starts there if it is retired exactly as asked.
  [[nodiscard]] AddressMap::Place place_of(Address address, bool retired) const noexcept;
  std::uint32_t occupy(std::uint32_t hole, std::uint64_t start, std::uint64_t units) noexcept;
  // The live block that contains the address, or 0.
  [[nodiscard]] std::uint32_t block_around(Address address) const noexcept;
  void end_life(std::uint32_t block, std::uint64_t units) noexcept;
  void prefetch_around(std::uint32_t block) const noexcept;
  void coalesce(const AddressMap::Place &place, std::uint64_t units) noexcept;
  void join_below(std::uint32_t block, std::uint64_t units) noexcept;
  void grow_hole(std::uint32_t hole, std::uint64_t was, std::uint64_t now) noexcept;
  void drop_entry(std::uint32_t node) noexcept;
  void defer_flush(std::uint64_t was) noexcept;
  void flush_cached_hole() noexcept;
  void enter_index(std::uint32_t hole, std::uint64_t units) noexcept;
  [[gnu::cold, gnu::noinline]] bool index_again() noexcept;
  // The node that contains a unit of that region.
  [[nodiscard]] std::uint32_t node_around(const Region &region, std::uint64_t unit) const noexcept;
  // The node that contains the address, or 0.
  [[nodiscard]] std::uint32_t node_around(Address address) const noexcept;
  [[nodiscard]] Block describe(std::uint32_t block) const noexcept;
  [[nodiscard]] Hole hole_of(std::uint32_t node) const noexcept {
    return {nodes_.at(node).address(), pool::bytes_of(size_of(nodes_, node))};
  }

  void enter_bin(std::uint32_t hole, std::uint64_t units) noexcept;
  void leave_bin(std::uint32_t hole, std::uint64_t units) noexcept;
  void change_bin(std::uint32_t hole, std::uint64_t was, std::uint64_t now) noexcept;
  static bool starts_after(Address address, const Region &region) { return address < region.slab.address; }
  [[nodiscard]] const Region *region_at(Address address) const noexcept;
  // REQUIRES: a region contains the address. Most programs allocate from one slab for long.
  [[nodiscard]] const Region &region_around(Address address) noexcept {
    const Region &recent = regions_[recent_region_];
    if (address - recent.slab.address < recent.slab.bytes) return recent;
    return look_up_region(address);
  }
  [[gnu::cold, gnu::noinline]] const Region &look_up_region(Address address) noexcept;
  [[nodiscard]] bool wholly_free(const Region &region) const noexcept;
  struct Tally;
  [[nodiscard]] std::string check_region(const Region &region, Tally &tally) const;

  Nodes nodes_;
  AddressMap blocks_{nodes_};
  HoleIndex index_{nodes_};
  SizeBins bins_;
  std::uint64_t unflushed_units_ = 0;  // size of the cached hole in index and bins; 0: up to date
  LifetimePredictor lifetimes_;
  std::unordered_map<std::uint32_t, std::uint64_t> names_;  // by node; of live blocks
  Runs runs_;
  std::vector<Region> regions_;    // by address
  std::size_t recent_region_ = 0;  // of the last allocation
  std::uint64_t usable_units_ = 0;
  std::uint64_t used_units_ = 0;
  std::uint64_t retired_units_ = 0;
  std::uint64_t withheld_units_ = 0;
  std::uint64_t withheld_count_ = 0;
  bool growing_ = false;
  std::uint64_t live_count_ = 0;
  std::uint64_t retired_count_ = 0;
  std::uint64_t holes_ = 0;
  std::uint64_t unindexed_ = 0;  // holes for which the index had no host memory
};

}  // namespace ration::pool
