#include "pool/hole_index.h"

#include <algorithm>
#include <vector>

#include "catch.h"

using namespace ration::pool;
using Side = HoleIndex::Side;

namespace {

constexpr std::uint64_t kStride = std::uint64_t{1} << 24;  // units from one hole to the next

// Holes at multiples of kStride, each followed by a block that is no entry.
class Holes {
 public:
  void add(std::uint64_t position, std::uint64_t units) {
    REQUIRE(nodes.prepare(2));
    REQUIRE(index.prepare());
    const std::uint32_t hole = node(kStride * position, Node::Kind::kHole);
    nodes.at(hole).next = node(kStride * position + units, Node::Kind::kBlock);
    index.add(hole, units);
    if (numbers.size() <= position) numbers.resize(position + 1);
    numbers[position] = hole;
  }
  void resize(std::uint64_t position, std::uint64_t units) {
    const Node &hole = nodes.at(numbers[position]);
    nodes.at(hole.next).unit(hole.unit() + units);
    index.resize(numbers[position], units);
  }
  void shrink(std::uint64_t position, std::uint64_t units) {
    const Node &hole = nodes.at(numbers[position]);
    nodes.at(hole.next).unit(hole.unit() + units);
    index.shrink(numbers[position], units);
  }
  void close(std::uint64_t position) {
    index.close(numbers[position]);
    nodes.at(numbers[position]).kind(Node::Kind::kBlock);
  }
  void remove(std::uint64_t position) { index.remove(numbers[position]); }
  // Position of the answer; -1: none.
  [[nodiscard]] std::int64_t find(std::uint64_t units, Side side, std::uint32_t among = 1) {
    const std::uint32_t hole = index.find(units, side, among);
    return position_of(hole);
  }
  [[nodiscard]] std::int64_t find_tiled(std::uint64_t units, std::uint32_t among) {
    return position_of(index.find_tiled(units, among));
  }

  Nodes nodes;
  HoleIndex index{nodes};
  std::vector<std::uint32_t> numbers;

 private:
  [[nodiscard]] std::int64_t position_of(std::uint32_t hole) const {
    return hole == 0 ? -1 : static_cast<std::int64_t>(nodes.at(hole).unit() / kStride);
  }
  std::uint32_t node(std::uint64_t unit, Node::Kind kind) {
    const std::uint32_t number = nodes.take();
    nodes.at(number).place = 0;
    nodes.at(number).unit(unit);
    nodes.at(number).kind(kind);
    return number;
  }
};

// Three levels of pages, filled in an order that splits pages everywhere.
constexpr std::uint64_t kMany = 4001;
std::uint64_t scattered(std::uint64_t step) {
  return step * 1597 % kMany;
}

}  // namespace

TEST_CASE("an empty index has no hole") {
  Holes holes;
  CHECK(holes.find(1, Side::kLow) == -1);
  CHECK(holes.index.find_before(5) == 0);
  CHECK(holes.index.largest() == 0);
  CHECK(holes.index.check() == "");
}

TEST_CASE("the lowest and the highest hole that fit are found") {
  Holes holes;
  for (std::uint64_t step = 0; step < kMany; ++step) holes.add(scattered(step), 1 + scattered(step) % 100);
  REQUIRE(holes.index.check() == "");
  CHECK(holes.index.largest() == 100);
  for (std::uint64_t units = 1; units <= 100; ++units) {
    REQUIRE(holes.find(units, Side::kLow) == static_cast<std::int64_t>(units - 1));
    const std::uint64_t highest = units == 1 ? 4000 : 3999;  // 4000 has one unit, 3999 a hundred
    REQUIRE(holes.find(units, Side::kHigh) == static_cast<std::int64_t>(highest));
  }
  CHECK(holes.find(101, Side::kLow) == -1);
}

TEST_CASE("of several holes the tightest is returned, the first of equal ones") {
  Holes holes;
  const std::uint64_t sizes[] = {50, 9, 30, 20, 20, 40, 10};
  for (std::uint64_t position = 0; position < 7; ++position) holes.add(position, sizes[position]);
  CHECK(holes.find(15, Side::kLow, 1) == 0);
  CHECK(holes.find(15, Side::kLow, 2) == 2);
  CHECK(holes.find(15, Side::kLow, 3) == 3);
  CHECK(holes.find(15, Side::kLow, 99) == 3);
  CHECK(holes.find(15, Side::kHigh, 1) == 5);
  CHECK(holes.find(15, Side::kHigh, 2) == 4);
  CHECK(holes.find(45, Side::kHigh, 4) == 0);
}

TEST_CASE("the first few holes are counted across pages") {
  Holes holes;
  for (std::uint64_t position = 0; position < kMany; ++position) holes.add(position, position % 50 == 0 ? 70 : 10);
  holes.resize(100, 60);
  CHECK(holes.find(20, Side::kLow, 2) == 0);
  CHECK(holes.find(20, Side::kLow, 3) == 100);
  holes.resize(3900, 65);
  CHECK(holes.find(20, Side::kHigh, 2) == 4000);
  CHECK(holes.find(20, Side::kHigh, 3) == 3900);
}

TEST_CASE("for several blocks the hole with the smallest remainder is returned, the largest hole last") {
  Holes holes;
  CHECK(holes.find_tiled(1, 9) == -1);
  const std::uint64_t sizes[] = {5'000'000, 19, 999'999, 1'000'001, 38, 27};
  for (std::uint64_t position = 0; position < 6; ++position) holes.add(position, sizes[position]);
  CHECK(holes.find_tiled(10, 9) == 3);
  CHECK(holes.find_tiled(3, 9) == 2);
  CHECK(holes.find_tiled(19, 9) == 2);  // of 52,631 blocks, with 10 left over
  CHECK(holes.find_tiled(1'000'002, 9) == 0);
  CHECK(holes.find_tiled(5'000'000, 9) == 0);
  CHECK(holes.find_tiled(5'000'001, 9) == -1);
}

TEST_CASE("for several blocks the lowest holes are examined, across pages") {
  Holes holes;
  for (std::uint64_t position = 0; position < kMany; ++position) holes.add(position, position % 50 == 0 ? 70 : 10);
  holes.resize(100, 60);
  holes.resize(3900, 80);
  CHECK(holes.find_tiled(20, 9) == 100);
  CHECK(holes.find_tiled(75, 9) == 3900);
  CHECK(holes.find_tiled(81, 9) == -1);
}

TEST_CASE("bounds follow holes that grow, shrink and are removed") {
  Holes holes;
  for (std::uint64_t step = 0; step < kMany; ++step) holes.add(scattered(step), 10);
  holes.resize(2000, 500);
  CHECK(holes.find(11, Side::kLow) == 2000);
  holes.resize(1000, 600);
  CHECK(holes.index.largest() == 600);
  holes.resize(1000, 10);
  CHECK(holes.index.largest() == 500);
  holes.remove(2000);
  CHECK(holes.index.largest() == 10);
  CHECK(holes.find(11, Side::kHigh) == -1);
  CHECK(holes.index.check() == "");
}

TEST_CASE("repeated searches find the highest hole while others are added, grow, shrink and are removed") {
  Holes holes;
  for (std::uint64_t position = 0; position < 100; position += 10) holes.add(position, 20);
  const auto ask = [&holes](std::uint64_t units, int times = 9) {
    std::int64_t found = -1;
    for (int asked = 0; asked < times; ++asked) found = holes.find(units, Side::kHigh);
    REQUIRE(holes.index.check() == "");
    return found;
  };
  CHECK(ask(15) == 90);
  REQUIRE(holes.index.cached_hole() != 0);
  holes.add(95, 14);
  CHECK(ask(15, 1) == 90);
  CHECK(ask(14, 1) == 95);
  CHECK(ask(15) == 90);
  SECTION("another hole grows, and one is added") {
    holes.resize(95, 15);
    CHECK(ask(15, 1) == 95);
    holes.add(99, 50);
    CHECK(ask(15, 1) == 99);
    holes.shrink(99, 14);
    CHECK(ask(15) == 95);
    holes.resize(50, 90);
    CHECK(ask(15, 1) == 95);
    holes.remove(95);
    CHECK(ask(15, 1) == 90);
  }
  SECTION("the cached hole shrinks, becomes a block, or is removed") {
    holes.shrink(90, 14);
    CHECK(ask(15) == 80);
    holes.close(80);
    CHECK(ask(15) == 70);
    holes.remove(70);
    CHECK(ask(15) == 60);
  }
  SECTION("a request exceeds the cached hole, or is below the size for which it is cached") {
    holes.resize(30, 40);
    CHECK(ask(21, 1) == 30);
    CHECK(ask(14, 1) == 95);
  }
}

TEST_CASE("pages merge as entries are removed, and an emptied index can be filled again") {
  Holes holes;
  for (int round = 0; round < 3; ++round) {
    for (std::uint64_t step = 0; step < kMany; ++step) holes.add(scattered(step), 1 + step % 7);
    const std::size_t bytes = holes.index.host_bytes();
    for (std::uint64_t step = 0; step < kMany; ++step) {
      holes.remove(scattered(kMany - 1 - step));
      if (step % 97 == 0) REQUIRE(holes.index.check() == "");
    }
    CHECK(holes.index.entries() == 0);
    CHECK(holes.index.largest() == 0);
    CHECK(holes.index.host_bytes() == bytes);
    CHECK(holes.index.check() == "");
  }
}

TEST_CASE("the entry before any unit is found") {
  Holes holes;
  for (std::uint64_t step = 0; step < kMany; ++step) holes.add(scattered(step), 10);
  for (std::uint64_t position = 1; position < kMany; position += 2) holes.remove(position);
  for (std::uint64_t position = 0; position < kMany; ++position) {
    for (const std::uint64_t offset : {std::uint64_t{0}, kStride - 1}) {
      const std::uint32_t entry = holes.index.find_before(kStride * position + offset);
      REQUIRE(entry == holes.numbers[position & ~std::uint64_t{1}]);
    }
  }
}

TEST_CASE("holes of a terabyte and more are distinguished") {
  Holes holes;
  constexpr std::uint64_t kTebi = std::uint64_t{1} << 31;  // units
  const std::uint64_t far = 4096;                          // distance between holes
  for (std::uint64_t index = 0; index < 20; ++index) holes.add(far * index, kTebi * (1 + index % 5));
  CHECK(holes.index.largest() == 5 * kTebi);
  CHECK(holes.find(4 * kTebi, Side::kLow) == static_cast<std::int64_t>(far * 3));
  CHECK(holes.find(4 * kTebi, Side::kHigh) == static_cast<std::int64_t>(far * 19));
  CHECK(holes.find(5 * kTebi + 1, Side::kLow) == -1);
  CHECK(holes.find_tiled(4 * kTebi, 9) == static_cast<std::int64_t>(far * 3));
  CHECK(holes.find_tiled(1000, 9) >= 0);
  CHECK(holes.index.check() == "");
}

TEST_CASE("after a reserve, that number of entries needs no more host memory") {
  Holes holes;
  REQUIRE(holes.index.reserve(3000));
  const std::size_t bytes = holes.index.host_bytes();
  for (std::uint64_t step = 0; step < 3000; ++step) holes.add(scattered(step), 10);
  CHECK(holes.index.host_bytes() == bytes);
}
