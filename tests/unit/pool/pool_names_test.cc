// Names and marks of blocks. A name is unique for the life of the pool.
#include <set>
#include <vector>

#include "catch.h"
#include "pool/pool.h"

using namespace ration::pool;

namespace {

constexpr Address kBase = 0x7f0000000000;
constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

void give(Pool &pool, std::uint64_t bytes) {
  REQUIRE(pool.add_slab({kBase, Pool::slab_bytes_for(bytes), 7}) == AddSlabOutcome::kAdded);
}

Address take(Pool &pool, std::uint64_t bytes) {
  const AllocateOutcome outcome = pool.allocate(bytes);
  REQUIRE(outcome);
  return outcome.block.address;
}

}  // namespace

TEST_CASE("a block keeps its first name, at any address inside it") {
  Pool pool;
  give(pool, kMiB);
  const Address block = take(pool, 1000);
  const Address next = take(pool, 3000);
  CHECK(pool.name(block + 999, 11) == 11);
  CHECK(pool.name(block, 12) == 11);
  CHECK(pool.name(next + 2000, 13) == 13);
  CHECK(pool.name(block + 1, 14) == 11);
  CHECK(pool.check_invariants() == "");
}

TEST_CASE("an address outside live blocks has no name and takes no mark") {
  Pool pool;
  give(pool, kMiB);
  const Address freed = take(pool, 1000);
  const Address retired = take(pool, 1000);
  REQUIRE(pool.name(freed, 1) == 1);
  REQUIRE(pool.name(retired, 2) == 2);
  REQUIRE(pool.free(freed));
  REQUIRE(pool.retire(retired));
  for (const Address address : {freed, retired, kBase, kBase + kMiB / 2, kBase + 64 * kMiB}) {
    CAPTURE(address - kBase);
    CHECK(pool.name(address, 3) == 0);
    CHECK_FALSE(pool.mark(address, true));
    CHECK_FALSE(pool.is_marked(address));
  }
  CHECK(pool.check_invariants() == "");
}

TEST_CASE("name and mark end with a freed or retired block, and the next one at its place has neither") {
  Pool pool;
  give(pool, kMiB);
  std::uint64_t fresh = 1;
  for (const bool retires : {false, true}) {
    for (const bool has_neighbours : {false, true}) {
      CAPTURE(retires, has_neighbours);
      const Address below = take(pool, 512);
      const Address block = take(pool, 512);
      const Address above = take(pool, 512);
      if (!has_neighbours) {
        REQUIRE(pool.free(below));
        REQUIRE(pool.free(above));
      }
      const std::uint64_t name = ++fresh;
      REQUIRE(pool.name(block, name) == name);
      REQUIRE(pool.mark(block, true));
      CHECK(pool.is_marked(block));
      if (retires) {
        REQUIRE(pool.retire(block));
        REQUIRE(pool.check_invariants() == "");
        REQUIRE(pool.reclaim(block));
      } else {
        REQUIRE(pool.free(block));
      }
      REQUIRE(pool.check_invariants() == "");
      // The whole pool in blocks of the smallest size.
      std::vector<Address> all;
      for (AllocateOutcome outcome = pool.allocate(1); outcome; outcome = pool.allocate(1)) {
        all.push_back(outcome.block.address);
      }
      CHECK_FALSE(pool.is_marked(block));
      const std::uint64_t another = ++fresh;
      CHECK(pool.name(block, another) == another);
      for (const Address each : all) REQUIRE(pool.free(each));
      if (has_neighbours) {
        REQUIRE(pool.free(below));
        REQUIRE(pool.free(above));
      }
      REQUIRE(pool.check_invariants() == "");
    }
  }
}

TEST_CASE("a mark belongs to one block and can be removed") {
  Pool pool;
  give(pool, kMiB);
  const Address block = take(pool, 1000);
  const Address next = take(pool, 1000);
  CHECK(pool.mark(block + 700, true));
  CHECK(pool.is_marked(block));
  CHECK_FALSE(pool.is_marked(next));
  CHECK(pool.find(block)->requested == 1000);  // nothing else changed
  CHECK(pool.mark(block, false));
  CHECK_FALSE(pool.is_marked(block + 1));
  CHECK(pool.mark(block, true));
  CHECK(pool.retire(block));
  CHECK_FALSE(pool.is_marked(block));
  CHECK(pool.check_invariants() == "");
}

TEST_CASE("unnamed blocks take no memory for names, and that of named ones is freed with them") {
  Pool pool;
  give(pool, 4 * kMiB);
  std::vector<Address> blocks;
  for (int i = 0; i < 1000; ++i) blocks.push_back(take(pool, 1000));
  const std::uint64_t before = pool.statistics().metadata_bytes;
  std::set<std::uint64_t> names;
  for (const Address block : blocks) names.insert(pool.name(block, block));
  CHECK(names.size() == blocks.size());
  const std::uint64_t named = pool.statistics().metadata_bytes;
  CHECK(named >= before + 1000 * (sizeof(std::uint64_t) + sizeof(std::uint32_t)));
  for (const Address block : blocks) REQUIRE(pool.free(block));
  CHECK(pool.check_invariants() == "");
  for (Address &block : blocks) block = take(pool, 1000);
  CHECK(pool.statistics().metadata_bytes < named - 1000 * sizeof(std::uint64_t));
}
