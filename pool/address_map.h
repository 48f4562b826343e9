// Hash table from a block's start to its node. A bucket is one cache line: twelve node numbers and a hash byte of each.
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

  // Ensures that the next `blocks` insertions need no host memory; false when the host has none.
  [[nodiscard]] bool prepare(std::size_t blocks = 1) noexcept { return has(blocks) || grow(size_ + blocks); }
  // Whether they need none as it is.
  [[nodiscard]] bool has(std::size_t blocks) const noexcept { return size_ + blocks <= room_; }

  // A node's position; valid until the next insertion or erasure.
  struct Place {
    std::uint32_t node = 0;  // 0: none
    std::uint32_t lane = 0;
    std::uint32_t bucket = 0;
    std::uint32_t home = 0;  // bucket that the hash selects
  };
  // The node that starts at this granule.
  [[nodiscard]] Place look_up(std::uint64_t granule) const noexcept {
    if (size_ == 0) return {};
    const Hash hash = hash_of(granule);
    for (std::uint32_t at = hash.home;; at = next_bucket(at)) {
      const Bucket &bucket = buckets_[at];
      for (std::uint32_t alike = lanes::equal_bytes(bucket.tags.data(), hash.tag) & kAll; alike != 0;
           alike &= alike - 1) {
        const auto lane = static_cast<std::uint32_t>(std::countr_zero(alike));
        if (nodes_.at(bucket.node[lane]).granule() == granule) return {bucket.node[lane], lane, at, hash.home};
      }
      if (bucket.overflows() == 0) return {};
    }
  }
  // Its number, or 0.
  [[nodiscard]] std::uint32_t find(std::uint64_t granule) const noexcept { return look_up(granule).node; }
  // REQUIRES: a successful prepare(), and that the map has no node of that granule.
  void insert(std::uint64_t granule, std::uint32_t node) noexcept {
    ++size_;
    const Hash hash = hash_of(granule);
    for (std::uint32_t at = hash.home;; at = next_bucket(at)) {
      Bucket &bucket = buckets_[at];
      if (const std::uint32_t empty = lanes::equal_bytes(bucket.tags.data(), 0) & kAll; empty != 0) {
        const auto lane = static_cast<std::uint32_t>(std::countr_zero(empty));
        lanes::put_byte(bucket.tags.data(), lane, hash.tag);
        bucket.node[lane] = node;
        return;
      }
      bucket.change_overflows(1);
    }
  }
  // REQUIRES: a place that look_up() returned.
  void erase(const Place &place) noexcept {
    --size_;
    lanes::put_byte(buckets_[place.bucket].tags.data(), place.lane, 0);
    for (std::uint32_t at = place.home; at != place.bucket; at = next_bucket(at)) buckets_[at].change_overflows(-1);
  }

  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] std::size_t host_bytes() const noexcept { return bucket_count_ * sizeof(Bucket); }

 private:
  static constexpr std::uint32_t kWays = 12;
  static constexpr std::uint32_t kAll = (1U << kWays) - 1;
  struct alignas(64) Bucket {
    std::array<std::uint8_t, 16> tags;  // 0: an empty lane; the last four bytes count overflows
    std::array<std::uint32_t, kWays> node;

    // Nodes that were inserted into a later bucket because this one was full.
    [[nodiscard]] std::uint32_t overflows() const {
      return std::uint32_t{tags[kWays]} | std::uint32_t{tags[kWays + 1]} << 8U | std::uint32_t{tags[kWays + 2]} << 16U;
    }
    void change_overflows(std::int32_t change) {
      const std::uint32_t now = overflows() + static_cast<std::uint32_t>(change);
      for (std::uint32_t byte = 0; byte < 3; ++byte) tags[kWays + byte] = static_cast<std::uint8_t>(now >> 8 * byte);
    }
  };
  static_assert(sizeof(Bucket) == 64, "a look-up costs one cache line");

  struct Hash {
    std::uint32_t home;
    std::uint8_t tag;
  };
  [[nodiscard]] Hash hash_of(std::uint64_t granule) const noexcept {
    const std::uint64_t bits = mixed(granule);
    return {static_cast<std::uint32_t>((bits >> 32) * bucket_count_ >> 32), static_cast<std::uint8_t>(bits >> 24 | 1)};
  }
  [[nodiscard]] std::uint32_t next_bucket(std::uint32_t bucket) const noexcept {
    return bucket + 1 == bucket_count_ ? 0 : bucket + 1;
  }
  [[gnu::cold, gnu::noinline]] bool grow(std::size_t blocks) noexcept;

  const Nodes &nodes_;
  Bucket *buckets_ = nullptr;
  std::size_t bucket_count_ = 0;
  std::size_t size_ = 0;
  std::size_t room_ = 0;  // capacity in blocks
};

}  // namespace ration::pool
