// Places blocks in slabs of device memory, in units of 512 bytes. A block is first live, then perhaps retired (the
// program has freed it, but the device may still use it, so its memory stays occupied), and finally part of a hole.
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
  std::uint64_t bytes;      // rounded up to units
  std::uint64_t requested;  // the size that the program asked for
  std::uint64_t slab;       // id of the slab
};

struct [[nodiscard]] AllocateOutcome {
  enum class Kind {
    kAllocated,
    kNoRoom,        // no hole is large enough; largest_free is set
    kNoHostMemory,  // no host memory for the metadata; the pool is unchanged; largest_free may be too low
  };
  Kind kind;
  Block block;                 // kAllocated
  std::uint64_t largest_free;  // other kinds: bytes of the largest hole
  explicit operator bool() const { return kind == Kind::kAllocated; }
};

struct [[nodiscard]] FreeOutcome {
  enum class Kind { kFreed, kNotABlock, kTooLarge };
  Kind kind;
  std::uint64_t bytes;  // kFreed: the block's size, rounded up to units
  explicit operator bool() const { return kind == Kind::kFreed; }
};

enum class [[nodiscard]] AddSlabOutcome{kAdded, kTooSmall, kTooLarge, kOverlaps, kNoHostMemory};

struct Statistics {
  std::uint64_t slab_bytes;     // of all slabs, without withheld ranges
  std::uint64_t used_bytes;     // in live blocks, rounded up to units
  std::uint64_t retired_bytes;  // in retired blocks, rounded up to units
  std::uint64_t free_bytes;     // in holes
  std::uint64_t largest_hole;   // bytes; too low if a larger hole could not be indexed for lack of host memory
  std::uint64_t blocks;         // live blocks
  std::uint64_t retired_blocks;
  std::uint64_t holes;
  std::uint64_t slabs;
  std::uint64_t metadata_bytes;  // host memory of the metadata, spare capacity included
};

class Pool {
 public:
  // The end of the highest possible slab: five-level paging allows no higher device address.
  static constexpr Address kAddressEnd = ((Address{1} << Node::kUnitBits) - 1) << kUnitShift;

  Pool() = default;
  Pool(const Pool &) = delete;
  Pool &operator=(const Pool &) = delete;

  // O(log blocks), amortised, because a search may fail once at each hole that shrank. GUARANTEES: succeeds whenever a
  // hole is at least as large as the request and the host has memory for a page of metadata; the address is a multiple
  // of 512. A request for 0 bytes gets one unit.
  AllocateOutcome allocate(std::uint64_t bytes) noexcept;
  // The outcome of an allocation for which no hole is large enough.
  AllocateOutcome no_room() noexcept { return refusal(AllocateOutcome::Kind::kNoRoom); }
  // True if the next allocate() needs no host memory; for callers that must not call malloc.
  [[nodiscard]] bool is_prepared() const noexcept {
    return nodes_.has(1) && blocks_.has(1) && bins_.has(kMostBinned) && index_.is_prepared() && unindexed_ == 0;
  }
  // Obtains the host memory that is_prepared() checks for, if the host has it.
  void prepare() noexcept;
  // Turns a live block into a hole. O(log blocks). Needs no host memory. If no live block starts at `address`, nothing
  // changes.
  FreeOutcome free(Address address) noexcept;
  // Turns a live block into a retired one. O(log blocks). Needs no host memory. If no live block of at most `most`
  // bytes starts at `address`, nothing changes.
  FreeOutcome retire(Address address, std::uint64_t most = UINT64_MAX) noexcept;
  // Turns a retired block into a hole. O(log blocks). Needs no host memory. If no retired block starts at `address`,
  // nothing changes.
  FreeOutcome reclaim(Address address) noexcept;
  // The live block that contains `address`. O(log blocks).
  [[nodiscard]] std::optional<Block> find(Address address) const noexcept;
  // Writes up to `count` live blocks that start at or above `from`, in address order; returns how many it wrote. O(log
  // blocks + nodes passed). To continue, pass an address above the last block's.
  std::size_t live_blocks(Address from, Block *blocks, std::size_t count) const noexcept;
  // The unique name of the live block that contains `address`; a block without a name gets `fresh`. Returns 0 if there
  // is no such block or the host has no memory. Only named blocks need host memory for a name.
  std::uint64_t name(Address address, std::uint64_t fresh) noexcept;
  // Sets the caller's mark on the live block that contains `address`; the mark ends with the block. Returns false if
  // there is no such block.
  bool mark(Address address, bool marked) noexcept;
  [[nodiscard]] bool is_marked(Address address) const noexcept;
  // The slab that contains `address`, whether or not a block contains it too. O(log slabs).
  [[nodiscard]] std::optional<Slab> slab_of(Address address) const noexcept;

  // The whole units of the slab become one hole, which never merges with a hole of an adjacent slab.
  AddSlabOutcome add_slab(const Slab &slab) noexcept;
  // Removes a wholly free slab. Returns false if the slab holds a live or retired block, or if there is no such slab.
  bool remove_slab(std::uint64_t id) noexcept;
  // A slab without live or retired blocks, if there is one. O(slabs).
  [[nodiscard]] std::optional<Slab> wholly_free_slab() const noexcept;
  [[nodiscard]] std::uint64_t free_bytes() const noexcept {
    return pool::bytes_of(usable_units_ - used_units_ - retired_units_);
  }
  [[nodiscard]] std::uint64_t retired_bytes() const noexcept { return pool::bytes_of(retired_units_); }
  [[nodiscard]] std::uint64_t used_bytes() const noexcept { return pool::bytes_of(used_units_); }
  // True if the pool has a single slab and a block may be placed at once. If only retired blocks are left, it may not:
  // reclaiming them first leaves one large hole.
  [[nodiscard]] bool is_in_one_piece() const noexcept {
    return regions_.size() == 1 && (live_count_ != 0 || retired_count_ == 0);
  }
  // Withholds a part of a hole, in whole units: until restore(), that part is in no hole, no block and no sum. Returns
  // false, with nothing changed, if the range is not inside one hole or host memory has run out. O(log blocks).
  bool withhold(Address address, std::uint64_t bytes) noexcept;
  // Turns the withheld range that starts at `address` into a hole. Returns the range's bytes, or 0 if no such range
  // starts there. O(log blocks). Needs no host memory.
  std::uint64_t restore(Address address) noexcept;
  // Splits a withheld range: its first `bytes` stay one range, and the rest becomes another. Returns false if no
  // withheld range starts at `address`, if it is not longer than `bytes`, or if host memory has run out.
  bool split_withheld(Address address, std::uint64_t bytes) noexcept;
  // Joins the withheld range at `next` to the one at `address`, which ends at `next`. Needs no host memory. REQUIRES:
  // withheld ranges start at both addresses.
  void join_withheld(Address address, Address next) noexcept;
  struct Hole {
    Address address = 0;
    std::uint64_t bytes = 0;
  };
  // Calls visit(hole) for each hole of the slab at `address`, in address order. REQUIRES: there is such a slab.
  template <class Visit>
  void each_hole(Address address, Visit visit) const {
    const Region &region = *region_at(address);
    for (std::uint32_t at = region.begin; at != region.end; at = nodes_.at(at).next) {
      if (nodes_.at(at).is_hole()) visit(hole_of(at));
    }
  }
  // The hole that contains `address`, or a hole of 0 bytes if no hole does. O(log blocks).
  [[nodiscard]] Hole hole_around(Address address) const noexcept;
  // While `growing` is set, each block is placed at the low end of the lowest hole that fits, so that free memory
  // gathers at the high end, where the slab grows.
  void set_growing(bool growing) noexcept { growing_ = growing; }
  // Writes up to `count` slabs that start at or above `from`, in address order; returns how many it wrote.
  std::size_t slabs(Address from, Slab *slabs, std::size_t count) const noexcept;
  // The size that a slab needs to hold a request of `bytes`, if the slab starts on a unit boundary.
  // REQUIRES: bytes <= kMaximumBytes.
  static constexpr std::uint64_t slab_bytes_for(std::uint64_t bytes) { return pool::bytes_of(units_of(bytes)); }

  // True if some hole has at least `bytes`.
  [[nodiscard]] bool has_hole(std::uint64_t bytes) noexcept {
    flush_cached_hole();
    return index_.largest() >= units_of(bytes);
  }
  // True if all holes together have many times `bytes`, so that one of them is most likely large enough.
  [[nodiscard]] bool has_ample_room(std::uint64_t bytes) const noexcept {
    return units_of(bytes) < (usable_units_ - used_units_ - retired_units_) / kAmple;
  }

  // Obtains the host memory for about this many blocks, so that allocations up to that number make no system call.
  bool reserve(std::size_t blocks) noexcept;
  [[nodiscard]] Statistics statistics() noexcept;
  // Describes the first violated invariant; empty: none. O(blocks). Defined in tests/pool_checks, for tests only.
  [[nodiscard]] std::string check_invariants() const;
  // In address order. Defined in tests/pool_checks, for tests only.
  [[nodiscard]] std::vector<Hole> withheld_ranges() const;

 private:
  struct Region {
    Slab slab;
    std::uint32_t begin;  // begin and end are sentinel nodes
    std::uint32_t end;
  };

  // The number of bins that one allocation may enter: the bin of the cached hole, whose size was not flushed, and the
  // bin of the remainder.
  static constexpr std::size_t kMostBinned = 2;

  static constexpr std::uint64_t kAmple = 64;

  // True for one block in sixteen. Such blocks have index entries, at which a search for an address can start.
  static constexpr bool is_index_sample(std::uint64_t unit) { return mixed(unit) >> 60 == 0; }

  struct Placement {
    std::uint32_t hole;  // 0: no hole fits
    bool low;            // place the block at the hole's low end
  };
  [[nodiscard]] Placement cached_placement(std::uint64_t units) const noexcept;
  [[nodiscard]] Placement choose_hole(std::uint64_t units) noexcept;
  [[nodiscard, gnu::cold, gnu::noinline]] Placement choose_lowest(std::uint64_t units) noexcept;
  [[nodiscard, gnu::noinline]] Placement choose_in_run(std::uint64_t units) noexcept;
  [[nodiscard]] Placement choose_large(std::uint64_t units) noexcept;
  [[nodiscard]] Placement choose_tight(std::uint64_t units) noexcept;
  // Chooses the hole for the next block of a long run, whose last block is `before`.
  [[nodiscard]] std::uint32_t continue_run(std::uint32_t before, std::uint64_t units) noexcept;
  void record_lifetime(std::uint32_t block, std::uint64_t units) noexcept;
  [[gnu::cold, gnu::noinline]] AllocateOutcome refusal(AllocateOutcome::Kind kind) noexcept;
  std::uint32_t split_hole(const Placement &placement, std::uint64_t units, std::uint64_t left) noexcept;
  std::uint32_t take_whole_hole(std::uint32_t hole, std::uint64_t units) noexcept;
  std::uint32_t new_node(std::uint64_t unit, std::uint32_t previous, std::uint32_t next, Node::Kind kind) noexcept;
  void drop_node(std::uint32_t node) noexcept;
  // The place of the retired (or live, if `retired` is false) block that starts at `address`; empty if there is none.
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
  // The node that contains the unit. REQUIRES: the region contains it.
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
  // REQUIRES: a region contains the address. Checks the last region first: most programs allocate from one slab for a
  // long time.
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
  std::uint64_t unflushed_units_ = 0;  // size that index and bins still have for the cached hole; 0: up to date
  LifetimePredictor lifetimes_;
  std::unordered_map<std::uint32_t, std::uint64_t> names_;  // of live blocks, by node
  Runs runs_;
  std::vector<Region> regions_;    // sorted by address
  std::size_t recent_region_ = 0;  // the region of the last allocation
  std::uint64_t usable_units_ = 0;
  std::uint64_t used_units_ = 0;
  std::uint64_t retired_units_ = 0;
  std::uint64_t withheld_units_ = 0;
  std::uint64_t withheld_count_ = 0;
  bool growing_ = false;
  std::uint64_t live_count_ = 0;
  std::uint64_t retired_count_ = 0;
  std::uint64_t holes_ = 0;
  std::uint64_t unindexed_ = 0;  // holes that are not in the index because the host had no memory
};

}  // namespace ration::pool
