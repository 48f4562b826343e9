// The layout of a group's file: a header of two pages, then one slot for each process in the group.
// Layer: ledger. Threads, and processes: any of them may die between any two stores.
// The owner of a slot holds the lock on its life byte and writes all of the slot. Any process writes `life`,
// `Cell::applied`, `Device::total` and `Device::limit`, always by compare-and-exchange. If a process is stopped between
// its load and its exchange while others go on, its exchange finds another generation or operation number and fails.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "ledger/group_view.h"
#include "ledger/wide_word.h"

namespace ration::ledger::shared {

inline constexpr std::uint64_t kMagic = 0x5245474c4e544152;  // "RATNLGER"
// Increased with every change of this layout that an older reader or member would misread. Readers accept only their
// own version.
inline constexpr std::uint32_t kLayoutVersion = 3;

inline constexpr std::uint32_t kSlots = 4096;
inline constexpr std::uint32_t kDevices = 60;  // the most in one group: 8 GPUs with 7 MIG slices each, and 4 spare

using Word = std::atomic<std::uint64_t>;
static_assert(Word::is_always_lock_free && sizeof(Word) == 8);

// One device of the group, under its UUID.
struct Device {
  WideWord uuid;   // zero: the entry is unused; set once
  WideWord total;  // low: bytes that all members claim; high: the `Tag` of the operation that changed it last
  WideWord limit;  // low: the ordered limit, else the smallest that a living member states, else `left`, else
                   // kNoLimit; high: a count of the changes
  // When a dead member's memory of this device was last reclaimed (CLOCK_MONOTONIC); 0: never.
  std::atomic<std::uint64_t> last_reap_ns;
  Word wanted;    // the last wish, a `Wanted`; 0 if there was none
  Word ordered;   // 1 + the limit that was ordered for the group (orders.h); 0: none
  Word overhead;  // in the queue's file: bytes that the driver itself took for the run that ended last
  Word physical;  // bytes of memory that the device has; 0: not known
  Word left;      // 1 + the last limit stated by a member that has ended; 0: no member stated a limit
};

// A member's wish for memory that other members hold but do not use, in one word.
struct Wanted {
  static constexpr unsigned kSlotBits = 12;
  static constexpr unsigned kNumberBits = 20;
  static constexpr unsigned kUnitShift = 20;  // bytes are kept in MiB

  std::uint32_t slot = 0;
  std::uint64_t number = 0;  // counts the wishes, so that two wishes in a row always differ
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

// Identifies the operation that last changed a total. The new owner of a slot continues the numbering of the slot's
// operations, so a tag never repeats.
struct Tag {
  std::uint32_t slot = 0;
  std::uint64_t operation = 0;  // 0: none. Bit 0 is set if the operation reclaimed all that a dead owner claimed

  std::uint64_t packed() const { return operation << 16 | (slot + 1); }
  static Tag of(std::uint64_t packed) {
    return packed == 0 ? Tag{kSlots, 0} : Tag{static_cast<std::uint32_t>(packed & 0xffff) - 1, packed >> 16};
  }
};

// A `Stitching` in one word, so that no reader sees parts of two publications. A count that is too large for its bits
// is stored as the largest value that fits.
struct PackedStitching {
  static constexpr unsigned kGranuleBits = 20;  // enough for 2 TiB in granules of 2 MiB
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

// Two special values of an order. kUnordered: the earlier order was withdrawn. kRefused: written by the owner in place
// of an ordered guarantee that was refused.
inline constexpr std::uint64_t kUnordered = UINT64_MAX;
inline constexpr std::uint64_t kRefused = UINT64_MAX - 1;

// The memory that one process claims on one device: its guarantee, whether it holds that memory or not, plus the memory
// that it holds and that no guarantee covers.
struct Cell {
  // The bytes that the owner claims after its last even and its last odd operation. An operation writes its value here
  // before it changes the total.
  Word claimed[2];
  Word applied;  // the last operation known to be in the total; never decreases
  Word stated;   // 1 + the limit that the owner states for the group; 0: it states none

  // For display.
  Word limit;  // the process's own
  Word used;
  Word peak;
  Word allocations;
  Word failures[kFailureReasons.size()];
  Word published_unix_ns;
  Word touched;    // 1: the owner reserved memory or was refused it; 2: neither, but it had a context there
  Word stitching;  // a PackedStitching; 0 for an owner without granules

  // The owner's guarantee as part of its claim. The owner holds `claimed` - `guarantee` + `covered` bytes.
  Word guarantee;  // the owner's own guarantee, or that of the tree for which it holds one
  Word covered;    // bytes that the owner holds under its own guarantee or its tree's
  // The orders for the process while it runs: 1 + bytes, or kUnordered; 0 if there is none. Any process that may write
  // to the file may write the orders.
  Word ordered_limit;
  Word ordered_guarantee;
  Word waiting;    // bytes for which the owner waits; 0: it does not wait
  Word peak_used;  // for display; also 0 for an owner whose version does not write it
  Word unused[2];
};

struct Slot {
  // A dead owner counts as the owner until another process has reclaimed its memory.
  bool is_owned() const { return (life.load(std::memory_order_acquire) & 1) != 0; }

  Word life;  // generation << 1 | owned
  Word identity;
  Word start_unix_ns;
  Word pid_namespace;
  std::atomic<std::int32_t> pid;
  std::atomic<std::uint32_t> uid;
  Word tree;          // the tree for which the owner holds its guarantee; 0: for itself
  Word ticket;        // its position in the queue of processes that wait to start; 0: it is not in the queue
  Word orders;        // changes with each order for the owner, on any device
  Word heeded;        // the value of `orders` when the owner last took note of its orders
  Word seen_ns;       // CLOCK_MONOTONIC; when the owner last looked at the queue
  char program[432];  // null-terminated
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
  Word tickets;                            // the number of tickets given out so far
  Word random;                             // changes when a new group of this name begins
  std::uint64_t unused[16];
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

// Life bytes are beyond the end of the largest possible file, because they carry locks, never data.
inline constexpr std::int64_t kLifeBytes = std::int64_t{1} << 40;

}  // namespace ration::ledger::shared
