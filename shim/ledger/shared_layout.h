// Layout of a group's file: a header of two pages, then one slot for each process in the group.
// Layer: ledger. Threads, and processes: any of them may die between any two stores.
// A slot's owner, which holds the lock on the slot's life byte, writes all of its slot. Any process writes `life`,
// `Cell::applied` and the header, by exchange only. The exchange of a process that was stopped after its load fails: it
// finds another generation or operation number.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "ledger/group_view.h"
#include "ledger/wide_word.h"

namespace ration::ledger::shared {

inline constexpr std::uint64_t kMagic = 0x5245474c4e544152;  // "RATNLGER"
// Grows with every change of this file that an older reader or member would mistake. Readers accept only their own
// version.
inline constexpr std::uint32_t kLayoutVersion = 2;

inline constexpr std::uint32_t kSlots = 4096;
inline constexpr std::uint32_t kDevices = 60;  // of one group: 8 GPUs of 7 MIG slices each, and some spare

using Word = std::atomic<std::uint64_t>;
static_assert(Word::is_always_lock_free && sizeof(Word) == 8);

// One device of the group, under its UUID.
struct Device {
  WideWord uuid;   // zero: unused; set once
  WideWord total;  // low: bytes that all members claim; high: `Tag` of the operation that made it so
  WideWord limit;  // low: `ordered`, else the smallest that a living member states, kNoLimit for none; high: a count of
                   // its changes
  // CLOCK_MONOTONIC, when a dead member's memory was last reclaimed here; 0: never.
  std::atomic<std::uint64_t> last_reap_ns;
  Word wanted;    // `Wanted` of the last request that a member could not have; 0: there was none
  Word ordered;   // 1 + the limit that was set for the group while it runs; 0: none
  Word overhead;  // of the queue: what the driver took on its own account for the last run that has ended
  Word physical;  // bytes of the device; 0: not known
  Word unused[1];
};

// A member's wish for memory that others hold and do not use, in one word.
struct Wanted {
  static constexpr unsigned kSlotBits = 12;
  static constexpr unsigned kNumberBits = 20;
  static constexpr unsigned kUnitShift = 20;  // bytes in MiB

  std::uint32_t slot = 0;
  std::uint64_t number = 0;  // of the wish, so that no two in a row are alike
  std::uint64_t bytes = 0;   // rounded up

  std::uint64_t packed() const {
    const std::uint64_t units = (bytes >> kUnitShift) + (bytes % (std::uint64_t{1} << kUnitShift) != 0 ? 1 : 0);
    return units << (kSlotBits + kNumberBits) | (number & ((1U << kNumberBits) - 1)) << kSlotBits | slot;
  }
  static Wanted of(std::uint64_t word) {
    return {static_cast<std::uint32_t>(word & ((1U << kSlotBits) - 1)), word >> kSlotBits & ((1U << kNumberBits) - 1),
            word >> (kSlotBits + kNumberBits) << kUnitShift};
  }
};
static_assert(kSlots == 1U << Wanted::kSlotBits);

// Identifies the operation that changed a total last. The numbers of a slot's operations on a device continue across
// its owners, so a tag never repeats.
struct Tag {
  std::uint32_t slot = 0;
  std::uint64_t operation = 0;  // 0: none. Bit 0 is set on an operation that reclaimed all that a dead owner held

  std::uint64_t packed() const { return operation << 16 | (slot + 1); }
  static Tag of(std::uint64_t packed) {
    return packed == 0 ? Tag{kSlots, 0} : Tag{static_cast<std::uint32_t>(packed & 0xffff) - 1, packed >> 16};
  }
};

// `Stitching` in one word, so that no reader sees parts of two publications. Each count stops at its largest value.
struct PackedStitching {
  static constexpr unsigned kGranuleBits = 20;  // 2 TiB in pages of 2 MiB
  static constexpr unsigned kBlockBits = 18;
  static constexpr unsigned kTotalBits = 26;
  static_assert(kGranuleBits + kBlockBits + kTotalBits == 64);

  static std::uint64_t pack(const Stitching &counts) {
    return most(counts.total, kTotalBits) << (kGranuleBits + kBlockBits) |
           most(counts.blocks, kBlockBits) << kGranuleBits | most(counts.granules, kGranuleBits);
  }
  static Stitching of(std::uint64_t packed) {
    return {.granules = packed & largest(kGranuleBits),
            .blocks = packed >> kGranuleBits & largest(kBlockBits),
            .total = packed >> (kGranuleBits + kBlockBits)};
  }

 private:
  static constexpr std::uint64_t largest(unsigned bits) { return (std::uint64_t{1} << bits) - 1; }
  static std::uint64_t most(std::uint64_t count, unsigned bits) {
    return count < largest(bits) ? count : largest(bits);
  }
};

// As an order: nothing is ordered any more. And what an owner puts in the place of a guarantee that it was refused.
inline constexpr std::uint64_t kUnordered = UINT64_MAX;
inline constexpr std::uint64_t kRefused = UINT64_MAX - 1;

// What one process claims of one device of the group: its guarantee, used or not, and what it holds beyond what a
// guarantee covers.
struct Cell {
  // What the owner claims after an even and after an odd operation. The next operation's value is written before the
  // total changes.
  Word claimed[2];
  Word applied;  // the last operation that is known to be in the total; only grows
  Word stated;   // 1 + the limit that the owner states for the group; 0: none

  // For display.
  Word limit;  // of the process alone
  Word used;
  Word peak;
  Word allocations;
  Word failures[kFailureReasons.size()];
  Word published_unix_ns;
  Word touched;    // 1: the owner reserved, or was refused; 2: it has had a context there, and has done neither
  Word stitching;  // PackedStitching; for an owner without granules, 0

  // Of the claim. What the owner holds is what it claims, less its guarantee, and what a guarantee covers.
  Word guarantee;  // the owner's, or that of the tree for which it holds one
  Word covered;    // what the owner holds of its own guarantee or of its tree's
  // 1 + what was ordered for the process while it runs, or kUnordered; 0: nothing. Anybody who may write the file
  // writes them.
  Word ordered_limit;
  Word ordered_guarantee;
  Word waiting;    // bytes that the owner waits for; 0: it does not wait
  Word peak_used;  // for display; 0, too, for an owner that does not write it
  Word unused[2];
};

struct Slot {
  Word life;  // generation << 1 | owned
  Word identity;
  Word start_unix_ns;
  Word pid_namespace;
  std::atomic<std::int32_t> pid;
  std::atomic<std::uint32_t> uid;
  Word tree;          // for whose processes the owner holds a guarantee; 0: for itself
  Word ticket;        // its place in the queue of those that wait to start; 0: it does not
  Word orders;        // changes with each order for the owner, on any device
  Word heeded;        // the last of them of which the owner has taken note
  Word seen_ns;       // CLOCK_MONOTONIC, when the owner looked at the queue last
  char program[432];  // ends with a zero
  Cell cells[kDevices];
  Word unused[32];
};

struct Header {
  std::uint64_t magic;
  std::uint32_t version;
  std::uint32_t header_bytes;
  std::uint32_t slot_bytes;
  std::uint32_t slots;
  std::uint32_t devices;
  std::uint32_t cell_bytes;
  char name[72];                           // of the group
  std::atomic<std::uint32_t> ready_slots;  // slots that the file has space for
  std::atomic<std::uint32_t> bell;         // a futex: changes with every wish, on any device
  Word tickets;                            // that were given out
  std::uint64_t unused[17];
  Device device[kDevices];
  std::uint64_t unused_at_end[272];
};

static_assert(sizeof(Device) == 96 && alignof(Device) == 16);
static_assert(offsetof(Device, total) == 16 && offsetof(Device, limit) == 32);
static_assert(sizeof(Cell) == 192 && offsetof(Cell, applied) == 16 && offsetof(Cell, limit) == 32);
static_assert(offsetof(Slot, program) == 80 && offsetof(Slot, cells) == 512 && sizeof(Slot) == 12288);
static_assert(offsetof(Header, name) == 32 && offsetof(Header, ready_slots) == 104);
static_assert(offsetof(Header, device) == 256 && sizeof(Header) == 8192);

inline constexpr std::size_t kFileBytes = sizeof(Header) + std::size_t{kSlots} * sizeof(Slot);

// Life bytes lie past the largest possible file: they carry locks, never data.
inline constexpr std::int64_t kLifeBytes = std::int64_t{1} << 40;

}  // namespace ration::ledger::shared
