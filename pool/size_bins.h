// Finds large holes by size: two-level segregated lists with bitmaps, and best fit among a few holes of a bin.
// Layer: pool, a leaf (standard library only). Threads: none of its own; the caller locks.
// The bins are incomplete: a hole that is missing here is found by the HoleIndex. Without the bins, the trace
// `steady10k` needs 1.087 times its peak instead of 1.052 times.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "pool/indexed_pool.h"
#include "pool/unit.h"

namespace ration::pool {

class SizeBins {
 public:
  // Holes below 8 MiB are not binned: smaller requests are placed by address (see placement.cc).
  static constexpr unsigned kSmallestShift = 23 - kUnitShift;
  static constexpr std::uint64_t kSmallestUnits = std::uint64_t{1} << kSmallestShift;

  struct Record {
    std::uint64_t units;
    std::uint32_t hole;      // its node
    std::uint32_t previous;  // a record number, like `next`; 0: none
    union {
      std::uint32_t next_spare;
      std::uint32_t next;
    };
  };

  // Returns the record's number, or 0 if there is no room for one. REQUIRES: units >= kSmallestUnits.
  std::uint32_t insert(std::uint32_t hole, std::uint64_t units) noexcept;
  void remove(std::uint32_t number) noexcept;
  // True if the next `holes` insertions need no host memory. prepare() obtains that memory if the host has it.
  [[nodiscard]] bool has(std::size_t holes) const noexcept { return records_.has(holes) || records_.is_full(); }
  void prepare(std::size_t holes) noexcept { (void)records_.prepare(holes); }
  // Tells the bins that the hole's size has changed. REQUIRES: units >= kSmallestUnits.
  void change(std::uint32_t number, std::uint64_t units) noexcept {
    Record &record = records_.at(number);
    const unsigned shift = static_cast<unsigned>(std::bit_width(record.units)) - 1 - kSecondBits;
    if ((record.units ^ units) >> shift == 0) {  // most holes keep their bin and are not relinked
      record.units = units;
    } else {
      move(number, units);
    }
  }
  // Returns the tightest of a few holes of at least `units`, from the request's own bin or else the next non-empty bin;
  // 0 if it finds none. May miss a hole far down the list of the request's bin. REQUIRES: units >= kSmallestUnits.
  [[nodiscard]] std::uint32_t find(std::uint64_t units) const noexcept;

  [[nodiscard]] const Record *record(std::uint32_t number) const noexcept;
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] std::size_t host_bytes() const noexcept { return records_.host_bytes(); }
  // The first violated invariant of the bins themselves, or empty.
  [[nodiscard]] std::string check() const;

 private:
  static constexpr unsigned kSecondBits = 5;  // 32 steps per octave, each 3 % wide
  static constexpr unsigned kSecond = 1U << kSecondBits;
  static constexpr unsigned kFirst = 48 - kUnitShift - kSmallestShift + 1;
  static constexpr unsigned kScanned = 8;
  static_assert(kFirst <= 32 && kSecond <= 32, "a bitmap is one word");

  struct Bin {
    unsigned first, second;
  };
  void move(std::uint32_t number, std::uint64_t units) noexcept;
  void link(std::uint32_t number) noexcept;
  void unlink(std::uint32_t number) noexcept;
  static Bin bin_of(std::uint64_t units) noexcept;
  [[nodiscard]] std::optional<Bin> next_filled(Bin bin) const noexcept;
  [[nodiscard]] const Record *best_in(Bin bin, std::uint64_t units) const noexcept;

  std::uint32_t first_map_ = 0;
  std::array<std::uint32_t, kFirst> second_map_{};
  std::array<std::array<std::uint16_t, kSecond>, kFirst> head_{};
  // Record numbers fit into 16 bits of a hole's node. The HoleIndex finds the holes for which no number is left.
  IndexedPool<Record, sizeof(Record), UINT16_MAX> records_;
  std::size_t size_ = 0;
};

}  // namespace ration::pool
