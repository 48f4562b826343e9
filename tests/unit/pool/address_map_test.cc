#include "pool/address_map.h"

#include <vector>

#include "catch.h"

using namespace ration::pool;

namespace {

struct Filled {
  explicit Filled(std::size_t blocks, std::uint64_t stride = 2) {
    REQUIRE(nodes.prepare(blocks));
    for (std::size_t index = 0; index < blocks; ++index) {
      numbers.push_back(nodes.take());
      nodes.at(numbers.back()).granule(stride * (index + 1));
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

TEST_CASE("every block is found by its start and by no other granule") {
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
  for (std::uint64_t granule = 1; granule <= 1000; ++granule) {
    const std::uint32_t node = filled.nodes.take();
    filled.nodes.at(node).granule(granule);
    REQUIRE(filled.map.prepare());
    filled.map.insert(granule, node);
  }
  CHECK(filled.map.host_bytes() == bytes);
}
