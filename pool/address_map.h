// A hash table from a block's start to its node. A bucket is one cache line: twelve node numbers and a hash byte for
// each. The table grows without a pause: a larger table is set up next to it, and each insertion moves some buckets
// into the larger one.
// Layer: pool, a leaf (standard library only). Threads: none of its own; the caller locks. Owns: its table.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "pool/lanes.h"
#include "pool/node.h"

namespace ration::pool {

class AddressMap {
 public:
  explicit AddressMap(const Nodes &nodes) : nodes_(nodes) {}
  AddressMap(const AddressMap &) = delete;
  AddressMap &operator=(const AddressMap &) = delete;
  ~AddressMap();

  // Ensures that the next `blocks` insertions need no host memory; returns false if host memory has run out. While the
  // map grows, each call also moves some nodes, and the last of these calls frees the smaller table.
  [[nodiscard]] bool prepare(std::size_t blocks = 1) noexcept { return has(blocks) || grow(size_ + blocks); }
  // True if prepare() would do nothing.
  [[nodiscard]] bool has(std::size_t blocks) const noexcept { return size_ + blocks <= room_; }

  struct Bucket;
  // A node's position; valid until the next prepare(), insertion or erasure.
  struct Place {
    std::uint32_t node = 0;  // 0: none
    std::uint32_t lane = 0;  // plus kAway if the bucket is not the one that the hash selects
    Bucket *bucket = nullptr;
  };
  // The node that starts at this unit.
  [[nodiscard]] Place look_up(std::uint64_t unit) const noexcept {
    const std::uint64_t bits = mixed(unit);
    Bucket *const home = table_.home(bits);
    if (const Place place = look_up_in(*home, unit, bits, 0); place.node != 0) return place;
    return home->overflows() == 0 && !is_moving() ? Place{} : look_up_away(unit);
  }
  // The number of the node that starts at this unit, or 0.
  [[nodiscard]] std::uint32_t find(std::uint64_t unit) const noexcept { return look_up(unit).node; }
  // REQUIRES: prepare() has succeeded, and no node in the map starts at this unit.
  void insert(std::uint64_t unit, std::uint32_t node) noexcept {
    ++size_;
    put(unit, node);
  }
  // REQUIRES: look_up() returned `place`, and the node's unit has not changed since.
  void erase(const Place &place) noexcept {
    --size_;
    if (place.lane >= kAway) [[unlikely]]
      return erase_away(place);
    lanes::put_byte(place.bucket->tags.data(), place.lane, 0);
  }

  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] std::size_t host_bytes() const noexcept { return (table_.count + old_.count) * sizeof(Bucket); }
  // The number of buckets of the smaller table that one prepare() empties; each bucket holds at most twelve nodes.
  static constexpr std::size_t kMoved = 16;
  [[nodiscard]] bool is_moving() const noexcept { return old_.buckets != nullptr; }

  static constexpr std::uint32_t kWays = 12;
  struct alignas(64) Bucket {
    std::array<std::uint8_t, 16> tags;  // 0 marks an empty lane; bytes 12 to 14 count overflows
    std::array<std::uint32_t, kWays> node;

    // The number of nodes that were inserted into a later bucket because this one was full.
    [[nodiscard]] std::uint32_t overflows() const {
      return std::uint32_t{tags[kWays]} | std::uint32_t{tags[kWays + 1]} << 8U | std::uint32_t{tags[kWays + 2]} << 16U;
    }
    void change_overflows(std::int32_t change) {
      const std::uint32_t now = overflows() + static_cast<std::uint32_t>(change);
      for (std::uint32_t byte = 0; byte < 3; ++byte) tags[kWays + byte] = static_cast<std::uint8_t>(now >> 8 * byte);
    }
  };
  static_assert(sizeof(Bucket) == 64, "a look-up costs one cache line");

 private:
  static constexpr std::uint32_t kAll = (1U << kWays) - 1;

  struct Table {
    Bucket *buckets = nullptr;
    std::size_t count = 0;

    [[nodiscard]] Bucket *home(std::uint64_t bits) const noexcept { return buckets + ((bits >> 32) * count >> 32); }
    [[nodiscard]] Bucket *next(Bucket *bucket) const noexcept {
      return bucket + 1 == buckets + count ? buckets : bucket + 1;
    }
  };
  static constexpr std::size_t kMostBuckets = UINT32_MAX;
  static constexpr std::size_t capacity_of(std::size_t buckets) noexcept { return buckets * kWays * 3 / 4; }

  static std::uint8_t tag_of(std::uint64_t bits) noexcept { return static_cast<std::uint8_t>(bits >> 24 | 1); }

  static constexpr std::uint32_t kAway = 16;

  [[nodiscard]] Place look_up_in(Bucket &bucket, std::uint64_t unit, std::uint64_t bits,
                                 std::uint32_t away) const noexcept {
    for (std::uint32_t alike = lanes::equal_bytes(bucket.tags.data(), tag_of(bits)) & kAll; alike != 0;
         alike &= alike - 1) {
      const auto lane = static_cast<std::uint32_t>(std::countr_zero(alike));
      if (nodes_.at(bucket.node[lane]).unit() == unit) return {bucket.node[lane], lane | away, &bucket};
    }
    return {};
  }
  void put(std::uint64_t unit, std::uint32_t node) noexcept {
    const std::uint64_t bits = mixed(unit);
    for (Bucket *at = table_.home(bits);; at = table_.next(at)) {
      if (const std::uint32_t empty = lanes::equal_bytes(at->tags.data(), 0) & kAll; empty != 0) {
        const auto lane = static_cast<std::uint32_t>(std::countr_zero(empty));
        lanes::put_byte(at->tags.data(), lane, tag_of(bits));
        at->node[lane] = node;
        return;
      }
      at->change_overflows(1);
    }
  }

  [[gnu::cold, gnu::noinline]] Place look_up_away(std::uint64_t unit) const noexcept;
  [[gnu::cold, gnu::noinline]] bool grow(std::size_t blocks) noexcept;
  [[gnu::cold, gnu::noinline]] void erase_away(const Place &place) noexcept;
  void move_some() noexcept;

  static inline constinit Bucket no_bucket{};  // every map uses it until the map first grows; never written

  const Nodes &nodes_;
  Table table_{&no_bucket, 0};
  std::size_t size_ = 0;
  std::size_t room_ = 0;   // capacity in blocks; 0 while nodes are being moved
  Table old_;              // the smaller table, while its nodes are being moved
  std::size_t moved_ = 0;  // buckets of old_ that have been emptied
};

}  // namespace ration::pool
