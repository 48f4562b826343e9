// Where blocks go. What a placement is good for is measured elsewhere (shapes_test.cc); here is what it promises to do.
#include <vector>

#include "catch.h"
#include "pool/pool.h"
#include "pool/lifetime_predictor.h"

using namespace ration::pool;

namespace {

constexpr Address kBase = 0x7f0000000000;
constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
constexpr std::uint64_t kLarge = SizeBins::kSmallestGranules * kGranuleBytes;

// A pool of 4 GiB with holes of the given sizes, lowest first, at the low end, a block of 1 MiB behind each.
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
  // The blocks of a long run come and go: from now on it is known that runs are long.
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

TEST_CASE("a small block goes to the top of the highest hole that takes it") {
  Prepared prepared({20 * kMiB, 30 * kMiB});
  const Address end = kBase + 4096 * kMiB;
  CHECK(prepared.allocate(kMiB) == end - kMiB);
  CHECK(prepared.allocate(kLarge - 512) == end - kMiB - kLarge + 512);
}

TEST_CASE("a smaller block goes to a higher hole that takes it, however often a larger one went elsewhere") {
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

TEST_CASE("what is freed between is found, however often a block went to one hole") {
  Prepared prepared({20 * kMiB});
  std::vector<Address> blocks;
  for (int block = 0; block < 9; ++block) blocks.push_back(prepared.allocate(kMiB));
  REQUIRE(prepared.pool.free(blocks[4]));
  CHECK(prepared.allocate(kMiB) == blocks[4]);
  REQUIRE(prepared.pool.free(blocks[8]));  // grows the hole to which they went
  REQUIRE(prepared.pool.free(blocks[2]));
  CHECK(prepared.allocate(kMiB) == blocks[2]);
  CHECK(prepared.allocate(kMiB) == blocks[8]);
  CHECK(prepared.pool.statistics().largest_hole == blocks[8] - prepared.separators[0] - kLarge - 512);
}

TEST_CASE("a single large block goes to the low end of the snuggest hole") {
  Prepared prepared({40 * kMiB, 20 * kMiB, 24 * kMiB});
  CHECK(prepared.allocate(20 * kMiB - 512) == prepared.at[1]);
  CHECK(prepared.allocate(22 * kMiB) == prepared.at[2]);
}

TEST_CASE("a large block behind one of its size goes low, to the snugger of the two lowest holes") {
  Prepared prepared({40 * kMiB, 30 * kMiB, 20 * kMiB});
  CHECK(prepared.allocate(16 * kMiB) == prepared.at[2]);
  CHECK(prepared.allocate(16 * kMiB) == prepared.at[1]);
}

TEST_CASE(
    "where runs are long, one goes on behind its last block, then to the low hole that it fills with the least rest") {
  Prepared prepared({40 * kMiB, 33 * kMiB, 20 * kMiB, 58 * kMiB});
  prepared.see_long_run();
  CHECK(prepared.allocate(16 * kMiB) == prepared.at[2]);  // alone
  CHECK(prepared.allocate(16 * kMiB) == prepared.at[1]);
  CHECK(prepared.allocate(16 * kMiB) == prepared.at[1] + 16 * kMiB);
  CHECK(prepared.allocate(16 * kMiB) == prepared.at[0]);
  CHECK(prepared.allocate(16 * kMiB) == prepared.at[0] + 16 * kMiB);
  CHECK(prepared.allocate(16 * kMiB) == prepared.at[3]);
}

TEST_CASE("a long run takes the largest hole last of all") {
  Prepared prepared({20 * kMiB, 30 * kMiB});  // and what is left of 4 GiB
  prepared.see_long_run();
  const Address behind = prepared.separators.back() + kLarge + 2 * 512;
  CHECK(prepared.allocate(16 * kMiB) == prepared.at[0]);
  CHECK(prepared.allocate(16 * kMiB) == prepared.at[1]);
  CHECK(prepared.allocate(16 * kMiB) == behind);
}

TEST_CASE("where runs are long, blocks of 2 MiB are large in one") {
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

TEST_CASE("a block of the size of one that was just freed is in no run") {
  Prepared prepared({9 * kMiB});
  prepared.see_long_run();
  const Address end = kBase + 4096 * kMiB;
  const Address freed = prepared.allocate(3 * kMiB);
  CHECK(freed == end - 3 * kMiB);
  REQUIRE(prepared.pool.retire(freed));
  CHECK(prepared.allocate(3 * kMiB) == end - 6 * kMiB);
}

TEST_CASE("a large size whose last block died young goes high") {
  Prepared prepared({});
  const Address end = kBase + 4096 * kMiB;
  (void)prepared.allocate(1024 * kMiB);
  const Address young = prepared.allocate(16 * kMiB);
  CHECK(young < end - 100 * kMiB);
  REQUIRE(prepared.pool.retire(young));
  CHECK(prepared.allocate(16 * kMiB) == end - 16 * kMiB);
}

TEST_CASE("a size is short_lived as long as its last block lived for less than a sixteenth of what is live") {
  LifetimePredictor lives;
  constexpr std::uint64_t kGranules = 20'000;
  constexpr std::uint64_t kLive = 16 * 4096 * 100;  // a sixteenth is 200 MiB
  CHECK_FALSE(lives.is_short_lived(kGranules));
  const std::uint32_t born = lives.now();
  lives.allocated(2048 * 199);
  lives.freed(kGranules, born, kLive);
  CHECK(lives.is_short_lived(kGranules));
  CHECK_FALSE(lives.is_short_lived(kGranules + 1));
  lives.allocated(2048);
  lives.freed(kGranules, born, kLive);
  CHECK_FALSE(lives.is_short_lived(kGranules));
}
