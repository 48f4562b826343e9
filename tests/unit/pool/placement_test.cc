// The placement rules one by one. shapes_test.cc measures the arenas that they lead to.
#include <vector>

#include "catch.h"
#include "pool/lifetime_predictor.h"
#include "pool/pool.h"

using namespace ration::pool;

namespace {

constexpr Address kBase = 0x7f0000000000;
constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
constexpr std::uint64_t kLarge = SizeBins::kSmallestUnits * kUnitBytes;

// A pool of 4 GiB with holes of the given sizes at the low end, lowest first, each followed by a block of 1 MiB.
struct Prepared {
  explicit Prepared(const std::vector<std::uint64_t> &sizes) {
    REQUIRE(pool.add_slab({kBase, 4096 * kMiB, 0}) == AddSlabOutcome::kAdded);
    std::vector<Address> holes;
    for (const std::uint64_t size : sizes) {
      holes.push_back(allocate(size));
      separators.push_back(allocate(kLarge + 512 * (separators.size() + 1)));
    }
    for (const Address hole : holes) REQUIRE(pool.free(hole));
    at = holes;
  }
  Address allocate(std::uint64_t bytes) {
    const AllocateOutcome outcome = pool.allocate(bytes);
    REQUIRE(outcome);
    REQUIRE(pool.check_invariants() == "");
    return outcome.block.address;
  }
  // Allocates and frees a long run, after which the pool expects long runs.
  void see_long_run() {
    std::vector<Address> run;
    while (run.size() < 16) run.push_back(allocate(kLarge + 64 * 512));
    for (const Address block : run) REQUIRE(pool.free(block));
  }
  Pool pool;
  std::vector<Address> at;
  std::vector<Address> separators;
};

}  // namespace

TEST_CASE("a small block goes to the high end of the highest hole that fits") {
  Prepared prepared({20 * kMiB, 30 * kMiB});
  const Address end = kBase + 4096 * kMiB;
  CHECK(prepared.allocate(kMiB) == end - kMiB);
  CHECK(prepared.allocate(kLarge - 512) == end - kMiB - kLarge + 512);
}

TEST_CASE("a smaller block goes to a higher hole although larger blocks used the cached one") {
  Prepared prepared({20 * kMiB});
  std::vector<Address> blocks;
  for (int block = 0; block < 4; ++block) blocks.push_back(prepared.allocate(kMiB));
  REQUIRE(prepared.pool.free(blocks[1]));  // a hole of 1 MiB
  const Address below = blocks[3];
  for (std::uint64_t step = 1; step <= 9; ++step) CHECK(prepared.allocate(3 * kMiB / 2) == below - 3 * kMiB / 2 * step);
  CHECK(prepared.allocate(kMiB / 2) == blocks[1] + kMiB / 2);
  CHECK(prepared.allocate(kMiB / 2) == blocks[1]);
  CHECK(prepared.allocate(kMiB / 2) == below - 3 * kMiB / 2 * 9 - kMiB / 2);
}

TEST_CASE("a freed hole is found although blocks used the cached one") {
  Prepared prepared({20 * kMiB});
  std::vector<Address> blocks;
  for (int block = 0; block < 9; ++block) blocks.push_back(prepared.allocate(kMiB));
  REQUIRE(prepared.pool.free(blocks[4]));
  CHECK(prepared.allocate(kMiB) == blocks[4]);
  REQUIRE(prepared.pool.free(blocks[8]));  // grows the hole that they used
  REQUIRE(prepared.pool.free(blocks[2]));
  CHECK(prepared.allocate(kMiB) == blocks[2]);
  CHECK(prepared.allocate(kMiB) == blocks[8]);
  CHECK(prepared.pool.statistics().largest_hole == blocks[8] - prepared.separators[0] - kLarge - 512);
}

TEST_CASE("a single large block goes to the low end of the tightest hole") {
  Prepared prepared({40 * kMiB, 20 * kMiB, 24 * kMiB});
  CHECK(prepared.allocate(20 * kMiB - 512) == prepared.at[1]);
  CHECK(prepared.allocate(22 * kMiB) == prepared.at[2]);
}

TEST_CASE("a large block that repeats a size goes to the lowest hole") {
  Prepared prepared({40 * kMiB, 30 * kMiB, 20 * kMiB});
  CHECK(prepared.allocate(16 * kMiB) == prepared.at[2]);
  CHECK(prepared.allocate(16 * kMiB) == prepared.at[0]);
}

TEST_CASE("a long run continues after its last block, then in the low hole with the smallest remainder") {
  Prepared prepared({40 * kMiB, 33 * kMiB, 20 * kMiB, 58 * kMiB});
  prepared.see_long_run();
  CHECK(prepared.allocate(16 * kMiB) == prepared.at[2]);  // alone
  CHECK(prepared.allocate(16 * kMiB) == prepared.at[1]);
  CHECK(prepared.allocate(16 * kMiB) == prepared.at[1] + 16 * kMiB);
  CHECK(prepared.allocate(16 * kMiB) == prepared.at[0]);
  CHECK(prepared.allocate(16 * kMiB) == prepared.at[0] + 16 * kMiB);
  CHECK(prepared.allocate(16 * kMiB) == prepared.at[3]);
}

TEST_CASE("a long run uses the largest hole last") {
  Prepared prepared({20 * kMiB, 30 * kMiB});  // and the rest of 4 GiB
  prepared.see_long_run();
  const Address after = prepared.separators.back() + kLarge + 2 * 512;
  CHECK(prepared.allocate(16 * kMiB) == prepared.at[0]);
  CHECK(prepared.allocate(16 * kMiB) == prepared.at[1]);
  CHECK(prepared.allocate(16 * kMiB) == after);
}

TEST_CASE("in a long run, blocks of 2 MiB count as large") {
  Prepared prepared({9 * kMiB, 13 * kMiB});
  CHECK(prepared.allocate(3 * kMiB) == kBase + 4096 * kMiB - 3 * kMiB);
  CHECK(prepared.allocate(3 * kMiB) == kBase + 4096 * kMiB - 6 * kMiB);
  for (std::uint64_t left = 2; left > 0; --left) REQUIRE(prepared.pool.free(kBase + 4096 * kMiB - 3 * left * kMiB));
  prepared.see_long_run();
  const Address end = kBase + 4096 * kMiB;
  CHECK(prepared.allocate(3 * kMiB) == end - 3 * kMiB);
  CHECK(prepared.allocate(3 * kMiB) == prepared.at[0]);
  CHECK(prepared.allocate(3 * kMiB) == prepared.at[0] + 3 * kMiB);
  CHECK(prepared.allocate(2 * kMiB - 512) == end - 5 * kMiB + 512);
  CHECK(prepared.allocate(2 * kMiB - 512) == end - 7 * kMiB + 1024);
}

TEST_CASE("a block of the size of one just freed is in no run") {
  Prepared prepared({9 * kMiB});
  prepared.see_long_run();
  const Address end = kBase + 4096 * kMiB;
  const Address freed = prepared.allocate(3 * kMiB);
  CHECK(freed == end - 3 * kMiB);
  REQUIRE(prepared.pool.retire(freed));
  CHECK(prepared.allocate(3 * kMiB) == end - 6 * kMiB);
}

TEST_CASE("a large block goes high when the last block of its size was short-lived") {
  Prepared prepared({});
  const Address end = kBase + 4096 * kMiB;
  (void)prepared.allocate(1024 * kMiB);
  const Address young = prepared.allocate(16 * kMiB);
  CHECK(young < end - 100 * kMiB);
  REQUIRE(prepared.pool.retire(young));
  CHECK(prepared.allocate(16 * kMiB) == end - 16 * kMiB);
}

TEST_CASE("a size is short-lived while its last block lived for less than a sixteenth of the live bytes") {
  LifetimePredictor lives;
  constexpr std::uint64_t kUnits = 20'000;
  constexpr std::uint64_t kLive = 16 * 4096 * 100;  // a sixteenth is 200 MiB
  CHECK_FALSE(lives.is_short_lived(kUnits));
  const std::uint32_t born = lives.now();
  lives.allocated(2048 * 199);
  lives.freed(kUnits, born, kLive);
  CHECK(lives.is_short_lived(kUnits));
  CHECK_FALSE(lives.is_short_lived(kUnits + 1));
  lives.allocated(2048);
  lives.freed(kUnits, born, kLive);
  CHECK_FALSE(lives.is_short_lived(kUnits));
}
