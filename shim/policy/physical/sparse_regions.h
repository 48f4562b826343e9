// Tracks which physical memory is mapped to parts of sparse arrays and to arrays with deferred mapping
// (cuMemMapArrayAsync).
// Layer: policy/physical. Threads: none; PhysicalMemory guards it. Owns: nothing of the driver.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <vector>

#include "base/saturating.h"
#include "driver/array_abi.h"

namespace ration::policy {

// A part of an array: a box of elements in one level and layer, a range of bytes in one layer's mip tail, or the whole
// array.
struct ArrayRegion {
  enum class Part : unsigned char { level, tail, all };
  using Triple = std::array<std::uint64_t, 3>;  // depth, height, width

  std::uint64_t array = 0;  // its handle
  Part part = Part::all;
  unsigned level = 0, layer = 0;
  Triple start{}, end{1, 1, 1};

  static std::uint64_t array_of(const CUarrayMapInfo &info);
  // REQUIRES: the driver accepted the entry. `deferred`: the array can only be mapped as a whole.
  static ArrayRegion of(const CUarrayMapInfo &info, bool deferred);
};

template <class Memory>
class SparseRegions {
 public:
  // The effect of a change: the pieces of memory that lost a region and those that gained one, each once for every such
  // region.
  struct Change {
    std::vector<Memory> lost, gained;
  };
  // Maps the region to `memory`, or to no memory. Throws, and changes nothing, if host memory has run out.
  Change place(const ArrayRegion &region, const Memory &memory) {
    Change change;
    if (memory == nullptr && layers_.find(place_of(region)) == layers_.end()) {
      return change;
    }
    Layer &layer = layers_[place_of(region)];
    const auto away = meeting(layer, region.start, region.end);
    Boxes fresh;
    for (const auto &box : away) {
      change.lost.push_back(box->second.memory);
      cut(box->first, box->second.end, box->second.memory, region, fresh);
    }
    if (memory != nullptr) {
      fresh.insert_or_assign(region.start, Box{region.end, memory});
    }
    for (const auto &[start, box] : fresh) {
      change.gained.push_back(box.memory);
    }
    // From here on nothing can fail.
    for (const auto &box : away) {
      layer.boxes.erase(box);
    }
    for (std::size_t axis = 0; axis < 3 && memory != nullptr; ++axis) {
      layer.largest[axis] = std::max(layer.largest[axis], region.end[axis] - region.start[axis]);
    }
    layer.boxes.merge(fresh);
    if (layer.boxes.empty()) {
      layers_.erase(place_of(region));
    }
    return change;
  }
  // Removes all regions of an array that has been destroyed.
  Change forget(std::uint64_t array) {
    Change change;
    const auto first = layers_.lower_bound({array, 0, 0, 0});
    auto last = first;
    for (; last != layers_.end() && last->first[0] == array; ++last) {
      for (const auto &[start, box] : last->second.boxes) {
        change.lost.push_back(box.memory);
      }
    }
    layers_.erase(first, last);
    return change;
  }

 private:
  using Triple = ArrayRegion::Triple;
  struct Box {
    Triple end;
    Memory memory;
  };
  using Boxes = std::map<Triple, Box>;  // by start; disjoint
  struct Layer {
    Boxes boxes;
    Triple largest{};  // the largest extent of any box so far; it bounds where a search must begin
  };
  using Place = std::array<std::uint64_t, 4>;  // array, part, level, layer

  static Place place_of(const ArrayRegion &region) {
    return {region.array, static_cast<std::uint64_t>(region.part), region.level, region.layer};
  }
  static std::vector<typename Boxes::iterator> meeting(Layer &layer, const Triple &start, const Triple &end) {
    const auto earliest = [&](std::size_t axis) {
      const std::uint64_t reach = layer.largest[axis] == 0 ? 0 : layer.largest[axis] - 1;
      return minus_or_zero(start[axis], reach);
    };
    std::vector<typename Boxes::iterator> found;
    Boxes &boxes = layer.boxes;
    for (auto at = boxes.lower_bound({earliest(0), earliest(1), 0}); at != boxes.end() && at->first[0] < end[0];) {
      const Triple &from = at->first;
      const Triple &to = at->second.end;
      if (from[1] >= end[1]) {
        at = boxes.lower_bound({from[0] + 1, earliest(1), 0});
        continue;
      }
      if (from[1] < earliest(1)) {
        at = boxes.lower_bound({from[0], earliest(1), 0});
        continue;
      }
      const bool meets = to[0] > start[0] && to[1] > start[1] && to[2] > start[2] && from[2] < end[2];
      if (meets) {
        found.push_back(at);
      }
      ++at;
    }
    return found;
  }
  // Adds to `left` the part of a box that is outside `away`, as up to six boxes.
  static void cut(Triple start, Triple end, const Memory &memory, const ArrayRegion &away, Boxes &left) {
    for (std::size_t axis = 0; axis < 3; ++axis) {
      if (start[axis] < away.start[axis]) {
        Triple before = end;
        before[axis] = away.start[axis];
        left.insert_or_assign(start, Box{before, memory});
        start[axis] = away.start[axis];
      }
      if (end[axis] > away.end[axis]) {
        Triple after = start;
        after[axis] = away.end[axis];
        left.insert_or_assign(after, Box{end, memory});
        end[axis] = away.end[axis];
      }
    }
  }

  std::map<Place, Layer> layers_;
};

inline std::uint64_t ArrayRegion::array_of(const CUarrayMapInfo &info) {
  return info.resourceType == CU_RESOURCE_TYPE_ARRAY ? reinterpret_cast<std::uintptr_t>(info.resource.array)
                                                     : reinterpret_cast<std::uintptr_t>(info.resource.mipmap);
}

inline ArrayRegion ArrayRegion::of(const CUarrayMapInfo &info, bool deferred) {
  ArrayRegion region;
  region.array = array_of(info);
  if (deferred) {
    return region;
  }
  if (info.subresourceType == CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_MIPTAIL) {
    const auto &tail = info.subresource.miptail;
    region.part = Part::tail;
    region.layer = tail.layer;
    region.start = {0, 0, tail.offset};
    region.end = {1, 1, tail.offset + tail.size};
    return region;
  }
  const auto &box = info.subresource.sparseLevel;
  region.part = Part::level;
  region.level = box.level;
  region.layer = box.layer;
  region.start = {box.offsetZ, box.offsetY, box.offsetX};
  region.end = {std::uint64_t{box.offsetZ} + box.extentDepth, std::uint64_t{box.offsetY} + box.extentHeight,
                std::uint64_t{box.offsetX} + box.extentWidth};
  return region;
}

}  // namespace ration::policy
