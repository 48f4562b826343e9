// Regions of sparse arrays against a reference that knows of every single cell.
#include "policy/physical/sparse_regions.h"

#include <memory>
#include <random>
#include <set>

#include "catch.h"

using namespace ration;
using policy::ArrayRegion;

namespace {

using Ground = std::shared_ptr<int>;
using Regions = policy::SparseRegions<Ground>;
using RegionPart = ArrayRegion::Part;

// How often each memory is held, by what the changes said.
struct Holds {
  void take(const Regions::Change &change) {
    for (const Ground &gained : change.gained) {
      ++count[gained];
    }
    for (const Ground &lost : change.lost) {
      REQUIRE(count[lost] > 0);
      --count[lost];
    }
  }
  bool holds(const Ground &memory) { return count[memory] > 0; }
  std::map<Ground, int> count;
};

ArrayRegion box_of(std::uint64_t array, ArrayRegion::Triple start, ArrayRegion::Triple end, unsigned level = 0,
                   unsigned layer = 0) {
  return {array, RegionPart::level, level, layer, start, end};
}

CUarrayMapInfo entry_of_a_level() {
  CUarrayMapInfo info{};
  info.resourceType = CU_RESOURCE_TYPE_ARRAY;
  info.resource.array = reinterpret_cast<CUarray>(0x10);
  info.subresourceType = CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_SPARSE_LEVEL;
  info.subresource.sparseLevel = {2, 3, 10, 20, 30, 1, 2, 4'000'000'000U};
  return info;
}

}  // namespace

TEST_CASE("an entry_of_a_level names a box_of of elements, a run of a tail, or all of an array") {
  CUarrayMapInfo info = entry_of_a_level();
  const ArrayRegion level = ArrayRegion::of(info, false);
  CHECK(level.array == 0x10);
  CHECK((level.part == RegionPart::level && level.level == 2 && level.layer == 3));
  CHECK(level.start == ArrayRegion::Triple{30, 20, 10});
  CHECK(level.end == ArrayRegion::Triple{4'000'000'030U, 22, 11});
  const ArrayRegion all = ArrayRegion::of(info, true);
  CHECK((all.part == RegionPart::all && all.level == 0 && all.layer == 0 && all.array == 0x10));
  info.resourceType = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY;
  info.resource.mipmap = reinterpret_cast<CUmipmappedArray>(0x20);
  info.subresourceType = CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_MIPTAIL;
  info.subresource.miptail = {5, 65536, 131072};
  const ArrayRegion tail = ArrayRegion::of(info, false);
  CHECK((tail.array == 0x20 && tail.part == RegionPart::tail && tail.layer == 5 && tail.level == 0));
  CHECK((tail.start[2] == 65536 && tail.end[2] == 196608));
}

TEST_CASE("what was mapped at once is held until its last part is unmapped") {
  Regions regions;
  Holds holds;
  const Ground memory = std::make_shared<int>();
  holds.take(regions.place(box_of(1, {0, 0, 0}, {1, 4, 4}), memory));
  for (unsigned y = 0; y < 4; ++y) {
    for (unsigned x = 0; x < 4; ++x) {
      CHECK(holds.holds(memory));
      holds.take(regions.place(box_of(1, {0, y, x}, {1, y + 1, x + 1}), nullptr));
    }
  }
  CHECK_FALSE(holds.holds(memory));
}

TEST_CASE("levels, layers, tails and arrays are apart") {
  Regions regions;
  Holds holds;
  const Ground memory = std::make_shared<int>();
  const ArrayRegion::Triple none{0, 0, 0}, one{1, 1, 1};
  holds.take(regions.place(box_of(1, none, one), memory));
  holds.take(regions.place(box_of(1, none, one, 1), nullptr));
  holds.take(regions.place(box_of(1, none, one, 0, 1), nullptr));
  holds.take(regions.place(box_of(2, none, one), nullptr));
  holds.take(regions.place({1, RegionPart::tail, 0, 0, none, one}, nullptr));
  holds.take(regions.place({1, RegionPart::all, 0, 0, none, one}, nullptr));
  holds.take(regions.forget(2));
  CHECK(holds.holds(memory));
  holds.take(regions.forget(1));
  CHECK_FALSE(holds.holds(memory));
  CHECK(regions.forget(1).lost.empty());
}

TEST_CASE("after any sequence exactly those are held that some cell lies on") {
  constexpr unsigned kDeep = 3, kHigh = 5, kWide = 7, kArrays = 2, kLayers = 2;
  std::mt19937 random(20'25);
  const auto below = [&](unsigned end) { return std::uniform_int_distribution<unsigned>(0, end - 1)(random); };
  for (int round = 0; round < 40; ++round) {
    Regions regions;
    Holds holds;
    std::vector<Ground> memories;
    for (int i = 0; i < 5; ++i) {
      memories.push_back(std::make_shared<int>(i));
    }
    std::map<std::array<unsigned, 5>, Ground> cells;
    for (int step = 0; step < 200; ++step) {
      const unsigned array = below(kArrays), layer = below(kLayers);
      const unsigned z = below(kDeep), y = below(kHigh), x = below(kWide);
      const unsigned to_z = z + 1 + below(kDeep - z), to_y = y + 1 + below(kHigh - y), to_x = x + 1 + below(kWide - x);
      const bool gone = below(50) == 0;
      const Ground memory = below(3) == 0 ? nullptr : memories[below(5)];
      if (gone) {
        holds.take(regions.forget(array));
        std::erase_if(cells, [&](const auto &cell) { return cell.first[0] == array; });
      } else {
        holds.take(regions.place(box_of(array, {z, y, x}, {to_z, to_y, to_x}, 0, layer), memory));
        for (unsigned i = z; i < to_z; ++i) {
          for (unsigned j = y; j < to_y; ++j) {
            for (unsigned k = x; k < to_x; ++k) {
              cells[{array, layer, i, j, k}] = memory;
            }
          }
        }
      }
      std::set<Ground> lain_on;
      for (const auto &[place, memory_there] : cells) {
        lain_on.insert(memory_there);
      }
      for (const Ground &one : memories) {
        REQUIRE(holds.holds(one) == lain_on.contains(one));
      }
    }
  }
}
