#include "pool/address_tree.h"

#include "catch.h"

using namespace ration::pool;
using Position = AddressTree::Position;

namespace {

constexpr std::uint64_t kMany = 5000;  // three levels of pages

// Entry n starts at 1000 n; every third is a hole of n granules.
void fill(AddressTree &tree, bool backwards) {
  for (std::uint64_t step = 0; step < kMany; ++step) {
    const std::uint64_t n = backwards ? kMany - 1 - step : step;
    REQUIRE(tree.prepare_insert());
    tree.insert(1000 * n, n + 1, n % 3 == 0);
  }
  REQUIRE(tree.check() == "");
}

}  // namespace

TEST_CASE("an address finds the last entry that starts at or below it") {
  for (const bool backwards : {false, true}) {
    AddressTree tree;
    fill(tree, backwards);
    for (std::uint64_t n = 0; n < kMany; ++n) {
      for (const auto offset : std::initializer_list<std::uint64_t>{0, 1, 999}) {
        Position position;
        REQUIRE(tree.find(1000 * n + offset, position));
        REQUIRE(position.address() == 1000 * n);
      }
    }
  }
}

TEST_CASE("nothing starts below the first entry") {
  AddressTree tree;
  Position position;
  CHECK_FALSE(tree.find(5, position));
  REQUIRE(tree.prepare_insert());
  tree.insert(10, 1, false);
  CHECK_FALSE(tree.find(9, position));
}

TEST_CASE("walking visits every entry in order, both ways") {
  AddressTree tree;
  fill(tree, false);
  Position position;
  REQUIRE(tree.first(position));
  for (std::uint64_t n = 0; n < kMany; ++n) {
    REQUIRE(position.address() == 1000 * n);
    REQUIRE(tree.next(position) == (n + 1 < kMany));
  }
  for (std::uint64_t n = kMany; n-- > 0;) {
    REQUIRE(position.address() == 1000 * n);
    REQUIRE(tree.previous(position) == (n > 0));
  }
}

TEST_CASE("the lowest and the highest hole that fits are found") {
  AddressTree tree;
  fill(tree, false);
  Position position;
  for (std::uint64_t granules = 1; granules < kMany - 2; granules += 7) {
    REQUIRE(tree.find_lowest_hole(granules, position));
    REQUIRE(position.address() == 1000 * ((granules - 1 + 2) / 3 * 3));
    REQUIRE(tree.find_highest_hole(granules, position));
    REQUIRE(position.address() == 1000 * ((kMany - 1) / 3 * 3));
  }
  CHECK_FALSE(tree.find_lowest_hole(kMany, position));
  CHECK_FALSE(tree.find_highest_hole(kMany, position));
}

TEST_CASE("the largest hole follows every change") {
  AddressTree tree;
  fill(tree, false);
  CHECK(tree.largest_hole() == 4999);
  Position position;
  tree.find(4998 * 1000, position);
  tree.set(position, 4999, false);
  CHECK(tree.largest_hole() == 4996);
  tree.find(0, position);
  tree.set(position, 9000, true);
  CHECK(tree.largest_hole() == 9000);
  tree.erase(position);
  CHECK(tree.largest_hole() == 4996);
  CHECK(tree.check() == "");
}

TEST_CASE("an emptied tree reuses its pages") {
  AddressTree tree;
  std::size_t after_first = 0;
  for (int round = 0; round < 3; ++round) {
    fill(tree, round == 1);
    if (round == 0) after_first = tree.host_bytes();
    for (std::uint64_t n = 0; n < kMany; ++n) {
      // An odd stride, so that pages empty in the middle and at both ends.
      const Address address = 1000 * (n * 1237 % kMany);
      Position position;
      REQUIRE(tree.find(address, position));
      REQUIRE(position.address() == address);
      tree.erase(position);
      tree.tidy(address);
      if (n % 97 == 0) REQUIRE(tree.check() == "");
    }
    CHECK(tree.largest_hole() == 0);
  }
  CHECK(tree.host_bytes() <= after_first * 3 / 2);
}

TEST_CASE("tidying joins sparse pages") {
  AddressTree tree;
  fill(tree, false);
  for (std::uint64_t n = 0; n < kMany; ++n) {
    if (n % 16 == 0) continue;
    Position position;
    tree.find(1000 * n, position);
    tree.erase(position);
    tree.tidy(1000 * n);
  }
  REQUIRE(tree.check() == "");
  const std::size_t before = tree.host_bytes();
  for (std::uint64_t n = kMany; n < kMany + 4000; ++n) {
    REQUIRE(tree.prepare_insert());
    tree.insert(1000 * n, 1, false);
  }
  CHECK(tree.check() == "");
  CHECK(tree.host_bytes() == before);  // what the joined pages gave back was enough
}
