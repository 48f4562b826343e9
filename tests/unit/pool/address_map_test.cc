#include "pool/address_map.h"

#include <cstdint>
#include <random>
#include <unordered_map>
#include <vector>

#include "catch.h"

using namespace ration::pool;

namespace {

struct Filled {
  explicit Filled(std::size_t blocks, std::uint64_t stride = 2) {
    REQUIRE(nodes.prepare(blocks));
    for (std::size_t index = 0; index < blocks; ++index) {
      numbers.push_back(nodes.take());
      nodes.at(numbers.back()).unit(stride * (index + 1));
      REQUIRE(map.prepare());
      map.insert(stride * (index + 1), numbers.back());
    }
  }
  void erase(std::size_t index) { map.erase(map.look_up(2 * (index + 1))); }

  Nodes nodes;
  AddressMap map{nodes};
  std::vector<std::uint32_t> numbers;
};

}  // namespace

TEST_CASE("an empty map finds nothing") {
  const Nodes nodes;
  const AddressMap map(nodes);
  CHECK(map.find(0) == 0);
  CHECK(map.find(77) == 0);
  CHECK(map.host_bytes() == 0);
}

TEST_CASE("every block is found by its start and by no other unit") {
  for (const std::uint64_t stride : {std::uint64_t{2}, std::uint64_t{4096}, std::uint64_t{1} << 32}) {
    Filled filled(5000, stride);
    for (std::size_t index = 0; index < 5000; ++index) {
      REQUIRE(filled.map.find(stride * (index + 1)) == filled.numbers[index]);
      REQUIRE(filled.map.find(stride * (index + 1) + 1) == 0);
    }
    CHECK(filled.map.size() == 5000);
  }
}

TEST_CASE("an erased block is not found, the others are, and it can be inserted again") {
  Filled filled(3000);
  for (std::size_t index = 0; index < 3000; index += 3) filled.erase(index);
  for (std::size_t index = 0; index < 3000; ++index) {
    REQUIRE((filled.map.find(2 * (index + 1)) != 0) == (index % 3 != 0));
  }
  const std::size_t bytes = filled.map.host_bytes();
  for (std::size_t index = 0; index < 3000; index += 3) {
    REQUIRE(filled.map.prepare());
    filled.map.insert(2 * (index + 1), filled.numbers[index]);
  }
  for (std::size_t index = 0; index < 3000; ++index) {
    REQUIRE(filled.map.find(2 * (index + 1)) == filled.numbers[index]);
  }
  CHECK(filled.map.host_bytes() == bytes);
}

TEST_CASE("nodes that overflow a full bucket are found and erased in a later one") {
  // Fills the map to the load that prepare() allows, several times, so that buckets overflow and empty again.
  Filled filled(4000);
  for (int round = 0; round < 5; ++round) {
    for (std::size_t index = 0; index < 4000; ++index) filled.erase(index);
    REQUIRE(filled.map.size() == 0);
    for (std::size_t index = 0; index < 4000; ++index) REQUIRE(filled.map.find(2 * (index + 1)) == 0);
    for (std::size_t index = 4000; index-- > 0;) filled.map.insert(2 * (index + 1), filled.numbers[index]);
  }
  for (std::size_t index = 0; index < 4000; ++index) {
    REQUIRE(filled.map.find(2 * (index + 1)) == filled.numbers[index]);
  }
}

TEST_CASE("after a prepare, that number of blocks needs no more host memory") {
  Filled filled(0);
  REQUIRE(filled.nodes.prepare(1000));
  REQUIRE(filled.map.prepare(1000));
  const std::size_t bytes = filled.map.host_bytes();
  for (std::uint64_t unit = 1; unit <= 1000; ++unit) {
    const std::uint32_t node = filled.nodes.take();
    filled.nodes.at(node).unit(unit);
    REQUIRE(filled.map.prepare());
    filled.map.insert(unit, node);
  }
  CHECK(filled.map.host_bytes() == bytes);
}

TEST_CASE("growth moves a bounded share of the nodes with each insertion") {
  Filled filled(0);
  constexpr std::size_t kBlocks = 200000;
  REQUIRE(filled.nodes.prepare(kBlocks));
  std::size_t old_bytes = 0, insertions = 0, moves = 0;
  for (std::uint64_t unit = 1; unit <= kBlocks; ++unit) {
    const std::uint32_t node = filled.nodes.take();
    filled.nodes.at(node).unit(unit);
    const std::size_t bytes = filled.map.host_bytes();
    const bool was_moving = filled.map.is_moving();
    REQUIRE(filled.map.prepare());
    if (filled.map.is_moving() && !was_moving) {
      old_bytes = bytes;
      insertions = 0;
    } else if (was_moving && !filled.map.is_moving()) {
      CHECK((insertions + 1) * AddressMap::kMoved * 64 >= old_bytes);  // a bucket has 64 bytes
      CHECK(filled.map.host_bytes() == bytes - old_bytes);
      ++moves;
    }
    filled.map.insert(unit, node);
    ++insertions;
  }
  CHECK(moves > 20);
  for (std::uint64_t unit = 1; unit <= kBlocks; ++unit) REQUIRE(filled.map.find(unit) != 0);
}

TEST_CASE("a map that grows and shrinks finds what a plain table finds, whatever moves meanwhile", "[alone]") {
  for (const std::uint64_t stride : {std::uint64_t{1}, std::uint64_t{2048}, std::uint64_t{0xFFFFFFFB}}) {
    std::mt19937_64 random(stride);  // NOLINT(cert-msc51-cpp): the same run every time
    Filled filled(0);
    constexpr std::uint64_t kUnits = 60000;
    REQUIRE(filled.nodes.prepare(kUnits));
    std::unordered_map<std::uint64_t, std::uint32_t> model;
    std::size_t erased_while_moving = 0, found_while_moving = 0;
    for (std::size_t step = 0; step < 400000; ++step) {
      const std::uint64_t unit = stride * (1 + random() % kUnits);
      const AddressMap::Place place = filled.map.look_up(unit);
      const auto known = model.find(unit);
      REQUIRE(place.node == (known == model.end() ? 0 : known->second));
      const bool moving = filled.map.is_moving();
      found_while_moving += moving && place.node != 0;
      if (place.node == 0) {
        const std::uint32_t node = filled.nodes.take();
        filled.nodes.at(node).unit(unit);
        REQUIRE(filled.map.prepare());
        filled.map.insert(unit, node);
        model.emplace(unit, node);
      } else if (moving || random() % 4 == 0) {
        filled.map.erase(place);
        filled.nodes.give(place.node);
        model.erase(known);
        erased_while_moving += moving;
      }
    }
    CHECK(erased_while_moving > 100);
    CHECK(found_while_moving > 100);
    REQUIRE(filled.map.size() == model.size());
    for (const auto &[unit, node] : model) REQUIRE(filled.map.find(unit) == node);
  }
}
