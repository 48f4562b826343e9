// The blocks and slabs that live at a record of a log, and what a page draws of them. Layer: logs. Threads: none of its
// own.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <unordered_map>
#include <vector>

#include "logs/page/pool_event.h"

namespace ration::logs {

// One moment of one device.
struct MapMoment {
  // A slab; of a slab that is a range of addresses, a stretch that blocks lie in; or, with slab 0, all blocks outside
  // of slabs, side by side.
  struct Area {
    std::uint64_t slab = 0, address = 0, bytes = 0;
  };
  // A block, or small ones that are drawn as one.
  struct Span {
    std::size_t area = 0;
    std::uint64_t offset = 0, extent = 0;  // in the area
    std::uint64_t bytes = 0, count = 0;    // of the blocks
    std::uint32_t site = 0;                // of the most bytes
    std::uint64_t since_ns = 0;            // of the oldest
    std::uint64_t address = 0;
  };
  std::vector<Area> areas;
  std::vector<Span> spans;                         // by area and offset
  std::map<std::uint32_t, std::uint64_t> by_site;  // bytes of all blocks
  std::uint64_t blocks = 0;
  std::uint64_t left_out_areas = 0, left_out_blocks = 0;  // not drawn: the smallest areas
  std::uint64_t granules = 0, granule_bytes = 0;          // physical memory, which has no place in the areas
};

class PoolMap {
 public:
  struct Block {
    std::uint64_t address = 0, bytes = 0, requested = 0, since_ns = 0, slab = 0;
    std::uint32_t site = 0, device = 0;
    bool is_charged = true;
  };

  // The block that a `free` ends is left in ended(), until the next call.
  void add(const PoolEvent &event);
  const Block *ended() const { return has_ended_ ? &ended_ : nullptr; }
  std::uint64_t live() const { return blocks_.size(); }

  MapMoment at(std::uint32_t device) const;

 private:
  struct Key {
    std::uint64_t address;
    std::uint32_t kind;
    bool operator==(const Key &) const = default;
  };
  struct KeyHash {
    std::size_t operator()(const Key &key) const {
      return std::hash<std::uint64_t>()(key.address ^ key.address >> 17U) ^ std::size_t{key.kind} << 56U;
    }
  };
  struct Slab {
    std::uint64_t address = 0, bytes = 0;
    std::uint32_t device = 0;
    bool is_range = false, is_granule = false;
  };

  std::unordered_map<Key, Block, KeyHash> blocks_;
  std::map<std::uint64_t, Slab> slabs_;  // by number
  Block ended_;
  bool has_ended_ = false;
};

}  // namespace ration::logs
