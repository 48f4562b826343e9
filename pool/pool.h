// Where a block goes: slabs of device memory, cut into blocks on a granule of 512 bytes. A block is live, then perhaps
// retired (freed by the program but maybe still in use by the device: occupied, no longer live), then a hole.
// Layer: pool, a leaf (standard library only: no CUDA, no I/O, no logging). Threads: none of its own; the caller locks.
// Called from: any hook. Never throws, never calls an upstream, never touches the memory that it hands out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "pool/address_map.h"
#include "pool/granule.h"
#include "pool/hole_index.h"
#include "pool/node.h"
#include "pool/runs.h"
#include "pool/size_bins.h"
#include "pool/size_lives.h"
#include "pool/upstream.h"

namespace ration::pool {

struct Block {
  Address address;
  std::uint64_t bytes;      // as rounded to granules
  std::uint64_t requested;  // as asked for
  std::uint64_t slab;       // its id
};

struct [[nodiscard]] AllocateOutcome {
  enum class Kind {
    kAllocated,
    kNoRoom,        // no hole is large enough; largest_free says how large one is
    kNoHostMemory,  // the host has no memory for the book-keeping; nothing changed. largest_free may be too low
  };
  Kind kind;
  Block block;                 // kAllocated
  std::uint64_t largest_free;  // bytes; otherwise
  explicit operator bool() const { return kind == Kind::kAllocated; }
};

struct [[nodiscard]] FreeOutcome {
  enum class Kind { kFreed, kNotABlock, kTooLarge };
  Kind kind;
  std::uint64_t bytes;  // kFreed: the block's, as rounded
  explicit operator bool() const { return kind == Kind::kFreed; }
};

enum class [[nodiscard]] AddSlabOutcome{kAdded, kTooSmall, kTooLarge, kOverlaps, kNoHostMemory};

struct Statistics {
  std::uint64_t slab_bytes;     // what the slabs take
  std::uint64_t used_bytes;     // in live blocks, as rounded
  std::uint64_t retired_bytes;  // in retired blocks, as rounded
  std::uint64_t free_bytes;     // in holes; a slab's first granule is in none of the three
  std::uint64_t largest_hole;   // bytes; where the host had no memory at a free, perhaps that of another hole
  std::uint64_t blocks;         // live ones
  std::uint64_t retired_blocks;
  std::uint64_t holes;
  std::uint64_t slabs;
  std::uint64_t metadata_bytes;  // host memory of the book-keeping, spare room included
};

class Pool {
 public:
  // No slab reaches beyond: nothing has wider device addresses than five-level paging gives.
  static constexpr Address kAddressEnd = ((Address{1} << Node::kGranuleBits) - 1) << kGranuleShift;

  Pool() = default;
  Pool(const Pool &) = delete;
  Pool &operator=(const Pool &) = delete;

  // O(log blocks), amortised: what shrank is looked at in vain once. GUARANTEES: succeeds whenever one hole is at least
  // as large as the request (and the host has memory for a page of book-keeping); the address is a multiple of 512 and
  // never a slab's own. 0 bytes get a granule.
  AllocateOutcome allocate(std::uint64_t bytes) noexcept;
  // Live -> hole, at once. O(log blocks). Needs no memory. Anything but the start of a live block changes nothing.
  FreeOutcome free(Address address) noexcept;
  // Live -> retired. O(log blocks). Needs no memory. Anything but the start of a live block of at most `most` bytes
  // changes nothing.
  FreeOutcome retire(Address address, std::uint64_t most = UINT64_MAX) noexcept;
  // Retired -> hole. O(log blocks). Needs no memory. Anything but the start of a retired block changes nothing.
  FreeOutcome reclaim(Address address) noexcept;
  // The live block that contains `address`, which may point inside it. O(log blocks).
  [[nodiscard]] std::optional<Block> find(Address address) const noexcept;
  // Writes the live blocks that start at or above `from`, in address order, at most `count`; how many it wrote.
  // O(log blocks + what lies between them). To go on, start above the last one's address.
  std::size_t live_blocks(Address from, Block *blocks, std::size_t count) const noexcept;
  // What the live block around `address` is called, and no other ever is; a block that has no name yet gets `fresh`.
  // 0: there is none, or the host has no memory. Only a block that was asked about takes host memory for its name.
  std::uint64_t name(Address address, std::uint64_t fresh) noexcept;
  // A mark of the caller's on the live block around `address`, which ends with it. False: there is none.
  bool mark(Address address, bool marked) noexcept;
  [[nodiscard]] bool is_marked(Address address) const noexcept;
  // The slab that contains `address`, whether or not a block does. O(log slabs).
  [[nodiscard]] std::optional<Slab> slab_of(Address address) const noexcept;

  // Takes a slab into use; whole granules inside it, from the second address of it on, become one hole.
  AddSlabOutcome add_slab(const Slab &slab) noexcept;
  // Lets go of a slab if nothing in it is live or retired; false otherwise, or when there is no such slab.
  bool remove_slab(std::uint64_t id) noexcept;
  // A slab in which nothing is live or retired, if there is one. O(slabs log blocks).
  [[nodiscard]] std::optional<Slab> wholly_free_slab() const noexcept;
  // Writes the slabs that start at or above `from`, in address order, at most `count`; how many it wrote.
  std::size_t slabs(Address from, Slab *slabs, std::size_t count) const noexcept;
  // What a slab must measure so that a request of `bytes` fits into it, wherever it lies.
  // REQUIRES: bytes <= kMaximumBytes - 2 * kGranuleBytes.
  static constexpr std::uint64_t slab_bytes_for(std::uint64_t bytes) {
    return pool::bytes_of(granules_of(bytes)) + kGranuleBytes;
  }

  // Obtains the host memory for about this many blocks now, so that allocations up to there make no system call.
  bool reserve(std::size_t blocks) noexcept;
  [[nodiscard]] Statistics statistics() noexcept;
  // The first violated invariant in words, or empty. O(blocks); for tests and debugging.
  [[nodiscard]] std::string check_invariants() const;

 private:
  struct Region {
    Slab slab;
    std::uint32_t begin;  // fences
    std::uint32_t end;
  };

  // One block in sixteen is in the index: interior addresses are found from there.
  static constexpr bool is_landmark(std::uint64_t granule) { return mixed(granule) >> 60 == 0; }

  struct Placement {
    std::uint32_t hole;  // 0: there is none
    bool low;            // the block gets the hole's low end
  };
  [[nodiscard]] Placement choose_again(std::uint64_t granules) const noexcept;
  [[nodiscard]] Placement choose_hole(std::uint64_t granules) noexcept;
  [[nodiscard, gnu::noinline]] Placement choose_in_run(std::uint64_t granules) noexcept;
  [[nodiscard]] Placement choose_snug(std::uint64_t granules) noexcept;
  // The hole for another block of a long run, behind that one.
  [[nodiscard]] std::uint32_t go_on(std::uint32_t before, std::uint64_t granules) noexcept;
  void learn(std::uint32_t block, std::uint64_t granules) noexcept;  // that it is freed
  [[gnu::cold, gnu::noinline]] AllocateOutcome refusal(AllocateOutcome::Kind kind) noexcept;
  std::uint32_t carve(const Placement &placement, std::uint64_t granules, std::uint64_t left) noexcept;
  std::uint32_t carve_whole(std::uint32_t hole, std::uint64_t granules) noexcept;
  std::uint32_t new_node(std::uint64_t granule, std::uint32_t previous, std::uint32_t next, Node::Kind kind) noexcept;
  void drop_node(std::uint32_t node) noexcept;
  // The block that starts there; none where none does, or one that is retired and should not be, or the other way
  // round.
  [[nodiscard]] AddressMap::Place place_of(Address address, bool retired) const noexcept;
  // The live block around that address; 0: none.
  [[nodiscard]] std::uint32_t block_around(Address address) const noexcept;
  void end_life(std::uint32_t block, std::uint64_t granules) noexcept;
  void prefetch_around(std::uint32_t block) const noexcept;
  void open_up(const AddressMap::Place &place, std::uint64_t granules) noexcept;
  void join_below(std::uint32_t block, std::uint64_t granules) noexcept;
  void grow_hole(std::uint32_t hole, std::uint64_t was, std::uint64_t now) noexcept;
  void drop_entry(std::uint32_t node) noexcept;
  void settle_later(std::uint64_t was) noexcept;
  void settle() noexcept;
  void enter_index(std::uint32_t hole, std::uint64_t granules) noexcept;
  [[gnu::cold, gnu::noinline]] bool index_again() noexcept;
  // The node around a granule of that region.
  [[nodiscard]] std::uint32_t node_around(const Region &region, std::uint64_t granule) const noexcept;
  [[nodiscard]] Block describe(std::uint32_t block) const noexcept;

  void enter_bin(std::uint32_t hole, std::uint64_t granules) noexcept;
  void leave_bin(std::uint32_t hole, std::uint64_t granules) noexcept;
  void change_bin(std::uint32_t hole, std::uint64_t was, std::uint64_t now) noexcept;
  static bool starts_behind(Address address, const Region &region) { return address < region.slab.address; }
  [[nodiscard]] const Region *region_at(Address address) const noexcept;
  // REQUIRES: there is one. Most programs keep to one slab for long.
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
  std::uint64_t told_granules_ = 0;  // what those two take the topmost hole's size for; 0: for what it is
  SizeLives lives_;
  std::unordered_map<std::uint32_t, std::uint64_t> names_;  // by node; of live blocks that were asked for theirs
  Runs runs_;
  std::vector<Region> regions_;    // by address
  std::size_t recent_region_ = 0;  // in which a block was allocated
  std::uint64_t usable_granules_ = 0;
  std::uint64_t used_granules_ = 0;
  std::uint64_t retired_granules_ = 0;
  std::uint64_t live_count_ = 0;
  std::uint64_t retired_count_ = 0;
  std::uint64_t holes_ = 0;
  std::uint64_t unbinned_ = 0;   // large holes for which the bins had no room
  std::uint64_t unindexed_ = 0;  // holes for which the index had no memory of the host's
};

}  // namespace ration::pool
