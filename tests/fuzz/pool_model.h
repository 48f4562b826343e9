// A pool that is trivially correct, and what the real one may answer beside it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "pool/pool.h"

namespace ration::pool {

// Remembers the live blocks and derives everything else by looking at all of them. Every `seen_` function returns what
// was wrong with the answer, or an empty string.
class PoolModel {
 public:
  std::string seen_slab(const Slab &slab) {
    slabs_[slab.address] = slab;
    return "";
  }
  void lose_slab(std::uint64_t id) {
    std::erase_if(slabs_, [id](const auto &entry) { return entry.second.id == id; });
  }

  std::string seen_allocate(std::uint64_t bytes, const AllocateOutcome &outcome) {
    // Nothing may wrap: a request beyond every pool stays beyond it.
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
    if (block.address % 512 != 0) return "not aligned";
    const auto slab = slab_around(block.address);
    if (!slab || block.address + size > slab->address + slab->bytes) return "outside every slab";
    if (slab->id != block.slab) return "named a wrong slab";
    if (block.address == slab->address) return "offset 0 of a slab";
    const auto after = live_.lower_bound(block.address);
    if (after != live_.end() && after->first < block.address + size) return "overlaps the block behind it";
    if (after != live_.begin() && std::prev(after)->first + std::prev(after)->second > block.address) {
      return "overlaps the block before it";
    }
    live_[block.address] = size;
    return "";
  }

  std::string seen_free(Address address, const FreeOutcome &outcome) {
    const auto block = live_.find(address);
    if (block == live_.end()) return outcome ? "freed what is no block" : "";
    if (!outcome) return "refused to free a live block";
    if (outcome.bytes != block->second) return "freed a wrong number of bytes";
    live_.erase(block);
    return "";
  }

  [[nodiscard]] std::string seen_find(Address address, const std::optional<Block> &found) const {
    auto block = live_.upper_bound(address);
    const bool expected = block != live_.begin() && address - (--block)->first < block->second;
    if (expected != found.has_value()) return expected ? "did not find a live block" : "found what is not there";
    return !expected || (found->address == block->first && found->bytes == block->second) ? "" : "found another block";
  }

  [[nodiscard]] std::string seen_statistics(const Statistics &told) const {
    std::uint64_t used = 0;
    for (const auto &[address, bytes] : live_) used += bytes;
    if (told.used_bytes != used || told.blocks != live_.size()) return "miscounted what is used";
    if (told.slabs != slabs_.size()) return "miscounted the slabs";
    return told.largest_hole == largest_hole() ? "" : "miscounted the largest hole";
  }

  [[nodiscard]] const std::map<Address, std::uint64_t> &live() const { return live_; }
  [[nodiscard]] const std::map<Address, Slab> &slabs() const { return slabs_; }

 private:
  [[nodiscard]] std::optional<Slab> slab_around(Address address) const {
    auto slab = slabs_.upper_bound(address);
    if (slab == slabs_.begin() || address - (--slab)->first >= slab->second.bytes) return std::nullopt;
    return slab->second;
  }

  [[nodiscard]] std::uint64_t largest_hole() const {
    std::uint64_t largest = 0;
    for (const auto &[base, slab] : slabs_) {
      Address from = (base / 512 + 1) * 512;
      const Address end = (base + slab.bytes) / 512 * 512;
      for (auto block = live_.lower_bound(base); block != live_.end() && block->first < end; ++block) {
        largest = std::max(largest, block->first - from);
        from = block->first + block->second;
      }
      largest = std::max(largest, end - from);
    }
    return largest;
  }

  std::map<Address, std::uint64_t> live_;  // start -> rounded size
  std::map<Address, Slab> slabs_;          // by address
};

}  // namespace ration::pool
