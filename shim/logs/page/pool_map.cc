#include "logs/page/pool_map.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

namespace ration::logs {
namespace {

using Area = MapMoment::Area;
using Span = MapMoment::Span;

constexpr std::size_t kExact = 1'500;       // so many blocks are drawn one by one
constexpr std::uint64_t kCells = 1'000;     // with more blocks, those smaller than a cell of the map are drawn together
constexpr std::size_t kAreas = 400;         // the most areas
constexpr std::uint64_t kGap = 32U << 20U;  // so many addresses without a block end a stretch

// Puts small blocks that follow each other in a cell of an area into one span.
class Gatherer {
 public:
  Gatherer(std::vector<Span> &spans, std::uint64_t cell) : spans_(spans), cell_(cell) {}

  void add(const PoolMap::Block &block, std::size_t area, std::uint64_t offset) {
    const bool is_small = block.bytes < cell_;
    const std::uint64_t number = offset / std::max<std::uint64_t>(cell_, 1);
    if (is_small && open_ && spans_.back().area == area && number == number_) {
      extend(block, offset);
      return;
    }
    spans_.push_back({area, offset, block.bytes, block.bytes, 1, block.note.site, block.ts_ns, block.address});
    open_ = is_small;
    number_ = number;
    most_ = block.bytes;
    run_ = block.bytes;
    last_site_ = block.note.site;
  }

 private:
  void extend(const PoolMap::Block &block, std::uint64_t offset) {
    Span &span = spans_.back();
    span.extent = offset + block.bytes - span.offset;
    span.bytes += block.bytes;
    ++span.count;
    span.since_ns = std::min(span.since_ns, block.ts_ns);
    // Takes the site of the longest run of one site. It is nearly always the site with most bytes, and needs no table
    // per span.
    run_ = block.note.site == last_site_ ? run_ + block.bytes : block.bytes;
    last_site_ = block.note.site;
    if (run_ > most_) {
      most_ = run_;
      span.site = block.note.site;
    }
  }

  std::vector<Span> &spans_;
  const std::uint64_t cell_;
  bool open_ = false;
  std::uint64_t number_ = 0, most_ = 0, run_ = 0;
  std::uint32_t last_site_ = 0;
};

// Keeps the largest areas and their spans.
void leave_out_areas(MapMoment &moment) {
  if (moment.areas.size() <= kAreas) {
    return;
  }
  std::vector<std::uint64_t> sizes;
  for (const Area &area : moment.areas) {
    sizes.push_back(area.bytes);
  }
  std::nth_element(sizes.begin(), sizes.begin() + kAreas - 1, sizes.end(), std::greater<>());
  const std::uint64_t least = sizes[kAreas - 1];
  std::vector<Area> kept;
  std::vector<std::size_t> places;  // index of the new area by that of the old one
  for (const Area &area : moment.areas) {
    const bool stays = area.bytes >= least && kept.size() < kAreas;
    places.push_back(stays ? kept.size() : kAreas);
    if (stays) {
      kept.push_back(area);
    }
  }
  moment.left_out_areas = moment.areas.size() - kept.size();
  moment.areas = std::move(kept);
  std::vector<Span> spans;
  for (Span span : moment.spans) {
    span.area = places[span.area];
    if (span.area == kAreas) {
      moment.left_out_blocks += span.count;
    } else {
      spans.push_back(span);
    }
  }
  moment.spans = std::move(spans);
}

}  // namespace

void PoolMap::add(const PoolEvent &event) {
  blocks_.forget();
  switch (event.type) {
    case PoolEvent::Type::alloc:
      blocks_.begin({event.address, event.kind}, {.address = event.address,
                                                  .bytes = event.bytes,
                                                  .requested = event.requested,
                                                  .slab = event.slab,
                                                  .ts_ns = event.ts_ns,
                                                  .device = event.device,
                                                  .is_charged = event.is_charged});
      blocks_.begun()->note.site = event.site;
      break;
    case PoolEvent::Type::free:
      blocks_.end({event.address, event.kind});
      break;
    case PoolEvent::Type::slab_alloc:
      slabs_[event.slab] = {event.address, event.bytes, event.device, event.is_range, event.is_granule};
      break;
    case PoolEvent::Type::slab_free:
      slabs_.erase(event.slab);
      break;
    case PoolEvent::Type::other:
      break;
  }
}

MapMoment PoolMap::at(std::uint32_t device) const {
  MapMoment moment;
  std::vector<const Block *> blocks;
  blocks_.each([&](const Block &block) {
    if (block.device == device && block.is_charged) {
      blocks.push_back(&block);
      moment.by_site[block.note.site] += block.bytes;
    }
  });
  moment.blocks = blocks.size();
  // A slab that is unknown, because its record was lost, counts as outside of slabs.
  const auto slab_of = [this](const Block &block) { return slabs_.contains(block.slab) ? block.slab : 0; };
  std::sort(blocks.begin(), blocks.end(), [&](const Block *a, const Block *b) {
    const auto place = [&](const Block *block) { return std::pair(slab_of(*block), block->address); };
    return place(a) < place(b);
  });

  std::vector<std::size_t> area_of;  // index of the area, by block
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const Block &block = *blocks[i];
    const std::uint64_t slab = slab_of(block);
    const bool is_new = i == 0 || moment.areas.back().slab != slab;
    if (slab == 0) {
      if (is_new) {
        moment.areas.push_back({0, block.address, 0});
      }
      moment.areas.back().bytes += block.bytes;
    } else if (const Slab &of = slabs_.at(slab); of.is_range) {
      const std::uint64_t end = is_new ? 0 : moment.areas.back().address + moment.areas.back().bytes;
      if (is_new || block.address > end + kGap) {
        moment.areas.push_back({slab, block.address, 0});
      }
      Area &stretch = moment.areas.back();
      stretch.bytes = std::max(stretch.bytes, block.address + block.bytes - stretch.address);
    } else if (is_new) {
      moment.areas.push_back({slab, of.address, of.bytes});
    }
    area_of.push_back(moment.areas.size() - 1);
  }
  std::uint64_t extent = 0;
  for (const Area &area : moment.areas) {
    extent += area.bytes;
  }
  Gatherer gatherer(moment.spans, blocks.size() > kExact ? std::max<std::uint64_t>(extent / kCells, 1) : 0);
  std::uint64_t packed = 0;  // bytes of the blocks outside of slabs, which are drawn side by side
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const Area &area = moment.areas[area_of[i]];
    const bool is_outside = area.slab == 0;
    gatherer.add(*blocks[i], area_of[i], is_outside ? packed : blocks[i]->address - area.address);
    packed += is_outside ? blocks[i]->bytes : 0;
  }
  std::unordered_set<std::uint64_t> drawn;
  for (const Area &area : moment.areas) {
    drawn.insert(area.slab);
  }
  // Adds the slabs that hold no block.
  for (const auto &[number, slab] : slabs_) {
    if (slab.device != device) {
      continue;
    }
    if (slab.is_granule) {
      ++moment.granules;
      moment.granule_bytes += slab.bytes;
    } else if (!slab.is_range && !drawn.contains(number)) {
      moment.areas.push_back({number, slab.address, slab.bytes});
    }
  }
  leave_out_areas(moment);
  return moment;
}

}  // namespace ration::logs
