// A trivially correct pool that checks the answers of the real pool.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "pool/pool.h"

namespace ration::pool {

// Records the occupied blocks and derives everything else from all of them. Every `seen_` function returns the error in
// an answer, or an empty string.
class PoolModel {
 public:
  struct Occupant {
    std::uint64_t bytes;  // as rounded
    std::uint64_t requested;
  };
  using Occupants = std::map<Address, Occupant>;
  // No device's address space is wider, so a pool may reject higher addresses.
  static constexpr Address kAddressEnd = Address{1} << 57;

  std::string seen_add_slab(const Slab &slab, AddSlabOutcome outcome) {
    using enum AddSlabOutcome;
    if (outcome == kNoHostMemory) return "had no host memory";
    const bool wraps = slab.address + slab.bytes < slab.address;
    const bool large = slab.bytes > kMaximumBytes || wraps;
    const bool may_be_large = large || slab.address + slab.bytes > kAddressEnd;
    const bool small = !wraps && (slab.address + slab.bytes) / 512 <= (slab.address + 511) / 512;
    const bool overlaps = !wraps && std::ranges::any_of(slabs_, [&slab](const auto &entry) {
      const Slab &other = entry.second;
      return slab.address < other.address + other.bytes && other.address < slab.address + slab.bytes;
    });
    if (outcome == kTooLarge) return may_be_large ? "" : "rejected a slab as too large that is not";
    if (outcome == kTooSmall) return small ? "" : "rejected a slab as too small that is not";
    if (outcome == kOverlaps) return overlaps ? "" : "rejected a slab as overlapping that is not";
    if (large || small || overlaps) return "added a slab that is too large, too small or overlaps";
    slabs_[slab.address] = slab;
    return "";
  }
  void lose_slab(std::uint64_t id) {
    std::erase_if(slabs_, [id](const auto &entry) { return entry.second.id == id; });
  }

  std::string seen_allocate(std::uint64_t bytes, const AllocateOutcome &outcome) {
    if (outcome.kind == AllocateOutcome::Kind::kNoHostMemory) return "had no host memory";
    // Must not wrap, so that a request that is too large stays too large.
    const std::uint64_t size =
        std::max<std::uint64_t>(std::min(bytes, kMaximumBytes * 2) / 512 + (bytes % 512 != 0), 1) * 512;
    const std::uint64_t largest = largest_hole();
    if (!outcome) {
      if (size <= largest) return "refused although a hole is large enough";
      return outcome.largest_free == largest ? "" : "named a wrong largest hole";
    }
    const Block &block = outcome.block;
    if (size > largest) return "found room where there is none";
    if (block.bytes != size) return "rounded to a wrong size";
    if (block.requested != bytes) return "recorded another request";
    if (block.address % 512 != 0) return "not aligned";
    const auto slab = slab_around(block.address);
    if (!slab || block.address + size > slab->address + slab->bytes) return "outside every slab";
    if (slab->id != block.slab) return "named a wrong slab";
    const auto after = occupied_.lower_bound(block.address);
    if (after != occupied_.end() && after->first < block.address + size) return "overlaps the block after it";
    if (after != occupied_.begin() && std::prev(after)->first + std::prev(after)->second > block.address) {
      return "overlaps the block before it";
    }
    occupied_[block.address] = size;
    live_[block.address] = {size, bytes};
    return "";
  }

  std::string seen_free(Address address, const FreeOutcome &outcome) {
    if (live_.count(address) != 0) occupied_.erase(address);
    return seen_end(live_, address, outcome);
  }
  std::string seen_retire(Address address, const FreeOutcome &outcome) {
    const auto block = live_.find(address);
    if (block != live_.end()) retired_.insert(*block);
    return seen_end(live_, address, outcome);
  }
  std::string seen_reclaim(Address address, const FreeOutcome &outcome) {
    if (retired_.count(address) != 0) occupied_.erase(address);
    return seen_end(retired_, address, outcome);
  }

  [[nodiscard]] std::string seen_find(Address address, const std::optional<Block> &found) const {
    auto block = live_.upper_bound(address);
    const bool expected = block != live_.begin() && address - (--block)->first < block->second.bytes;
    if (expected != found.has_value()) return expected ? "did not find a live block" : "found a block that is not live";
    return !expected || same(*block, *found) ? "" : "found another block";
  }

  // `found`: the output of live_blocks() for `count`.
  [[nodiscard]] std::string seen_live_blocks(Address from, std::size_t count, const std::vector<Block> &found) const {
    auto block = live_.lower_bound(from);
    for (const Block &each : found) {
      if (block == live_.end() || !same(*block++, each)) return "listed another block than the next";
    }
    return found.size() == count || block == live_.end() ? "" : "listed too few blocks";
  }

  [[nodiscard]] std::string seen_slab_of(Address address, const std::optional<Slab> &found) const {
    const std::optional<Slab> expected = slab_around(address);
    if (expected.has_value() != found.has_value())
      return expected ? "did not find a slab" : "found a slab that does not exist";
    return !expected || same(*expected, *found) ? "" : "found another slab";
  }

  // `found`: the output of slabs() for `count`.
  [[nodiscard]] std::string seen_slabs(Address from, std::size_t count, const std::vector<Slab> &found) const {
    auto slab = slabs_.lower_bound(from);
    for (const Slab &each : found) {
      if (slab == slabs_.end() || !same((slab++)->second, each)) return "listed another slab than the next";
    }
    return found.size() == count || slab == slabs_.end() ? "" : "listed too few slabs";
  }

  [[nodiscard]] std::string seen_wholly_free_slab(const std::optional<Slab> &found) const {
    if (found) {
      const auto slab = slabs_.find(found->address);
      if (slab == slabs_.end() || !same(slab->second, *found)) return "found an unknown slab free";
      return occupied_in(*found) ? "found a busy slab free" : "";
    }
    const bool any = std::ranges::any_of(slabs_, [this](const auto &entry) { return !occupied_in(entry.second); });
    return any ? "did not find a free slab" : "";
  }

  [[nodiscard]] std::string seen_statistics(const Statistics &statistics) const {
    if (statistics.used_bytes != bytes_in(live_) || statistics.blocks != live_.size())
      return "miscounted the used bytes";
    if (statistics.retired_bytes != bytes_in(retired_) || statistics.retired_blocks != retired_.size()) {
      return "miscounted the retired bytes";
    }
    if (statistics.slabs != slabs_.size()) return "miscounted the slabs";
    std::uint64_t bytes = 0;
    std::uint64_t usable = 0;
    for (const auto &[base, slab] : slabs_) {
      bytes += slab.bytes;
      usable += ((base + slab.bytes) / 512 - (base + 511) / 512) * 512;
    }
    if (statistics.slab_bytes != bytes) return "miscounted the bytes of the slabs";
    if (statistics.free_bytes != usable - bytes_in(live_) - bytes_in(retired_)) return "miscounted the free bytes";
    return statistics.largest_hole == largest_hole() ? "" : "miscounted the largest hole";
  }

  [[nodiscard]] bool occupied_in(const Slab &slab) const {
    const auto block = occupied_.lower_bound(slab.address);
    return block != occupied_.end() && block->first - slab.address < slab.bytes;
  }
  [[nodiscard]] const Occupants &live() const { return live_; }
  [[nodiscard]] const Occupants &retired() const { return retired_; }
  [[nodiscard]] const std::map<Address, Slab> &slabs() const { return slabs_; }

 private:
  static std::string seen_end(Occupants &occupants, Address address, const FreeOutcome &outcome) {
    const auto block = occupants.find(address);
    if (block == occupants.end()) return outcome ? "ended a block that does not exist" : "";
    if (!outcome) return "refused to end a block";
    if (outcome.bytes != block->second.bytes) return "ended a wrong number of bytes";
    occupants.erase(block);
    return "";
  }

  [[nodiscard]] bool same(const Occupants::value_type &expected, const Block &block) const {
    return block.address == expected.first && block.bytes == expected.second.bytes &&
           block.requested == expected.second.requested && block.slab == slab_around(block.address)->id;
  }

  static bool same(const Slab &expected, const Slab &slab) {
    return slab.address == expected.address && slab.bytes == expected.bytes && slab.id == expected.id;
  }

  static std::uint64_t bytes_in(const Occupants &occupants) {
    std::uint64_t bytes = 0;
    for (const auto &[address, occupant] : occupants) bytes += occupant.bytes;
    return bytes;
  }

  [[nodiscard]] std::optional<Slab> slab_around(Address address) const {
    auto slab = slabs_.upper_bound(address);
    if (slab == slabs_.begin() || address - (--slab)->first >= slab->second.bytes) return std::nullopt;
    return slab->second;
  }

  [[nodiscard]] std::uint64_t largest_hole() const {
    std::uint64_t largest = 0;
    for (const auto &[base, slab] : slabs_) {
      Address from = (base + 511) / 512 * 512;
      const Address end = (base + slab.bytes) / 512 * 512;
      for (auto block = occupied_.lower_bound(base); block != occupied_.end() && block->first < end; ++block) {
        largest = std::max(largest, block->first - from);
        from = block->first + block->second;
      }
      largest = std::max(largest, end - from);
    }
    return largest;
  }

  Occupants live_;                             // by start
  Occupants retired_;                          // likewise
  std::map<Address, std::uint64_t> occupied_;  // sizes of both, by start address
  std::map<Address, Slab> slabs_;              // by address
};

}  // namespace ration::pool
