// The live blocks and slabs of a log as of the event added last, and the shapes that a page draws for them.
// Layer: logs. Threads: none of its own.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "logs/history/live_blocks.h"
#include "logs/page/pool_event.h"

namespace ration::logs {

// The map of one device at one moment.
struct MapMoment {
  // A slab, or, if the slab is a range of addresses, a stretch of blocks in it. Slab 0 stands for all blocks outside
  // slabs, placed side by side.
  struct Area {
    std::uint64_t slab = 0, address = 0, bytes = 0;
  };
  // A block, or several small ones that are drawn as one.
  struct Span {
    std::size_t area = 0;
    std::uint64_t offset = 0, extent = 0;  // the position and length in the area
    std::uint64_t bytes = 0, count = 0;    // sums of the blocks
    std::uint32_t site = 0;                // the site with the most bytes
    std::uint64_t since_ns = 0;            // when the oldest block began
    std::uint64_t address = 0;
  };
  std::vector<Area> areas;
  std::vector<Span> spans;                         // sorted by area and offset
  std::map<std::uint32_t, std::uint64_t> by_site;  // bytes of all blocks, by site
  std::uint64_t blocks = 0;
  std::uint64_t left_out_areas = 0, left_out_blocks = 0;  // the smallest areas, which are not drawn, and their blocks
  std::uint64_t granules = 0, granule_bytes = 0;          // physical memory, which is not part of any area
};

class PoolMap {
 public:
  struct Place {
    std::uint32_t site = 0;
  };
  using Block = LiveBlocks<Place>::Block;

  void add(const PoolEvent &event);
  // The block that the last event ended; nullptr: none.
  const Block *ended() const { return blocks_.ended(); }
  // The block that the last event began; nullptr: none.
  const Block *begun() const { return blocks_.begun(); }
  std::uint64_t live() const { return blocks_.count(); }

  MapMoment at(std::uint32_t device) const;

 private:
  struct Slab {
    std::uint64_t address = 0, bytes = 0;
    std::uint32_t device = 0;
    bool is_range = false, is_granule = false;
  };

  LiveBlocks<Place> blocks_;
  std::map<std::uint64_t, Slab> slabs_;  // by number
};

}  // namespace ration::logs
