// Where blocks go. What a placement is good for is measured elsewhere (shapes_test.cc); here is what it promises to do.
#include <vector>

#include "catch.h"
#include "pool/pool.h"
#include "pool/size_lives.h"

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

TEST_CASE("a large size whose last block died young goes high") {
  Prepared prepared({});
  const Address end = kBase + 4096 * kMiB;
  (void)prepared.allocate(1024 * kMiB);
  const Address young = prepared.allocate(16 * kMiB);
  CHECK(young < end - 100 * kMiB);
  REQUIRE(prepared.pool.retire(young));
  CHECK(prepared.allocate(16 * kMiB) == end - 16 * kMiB);
}

TEST_CASE("a size is fleeting as long as its last block lived for less than a sixteenth of what is live") {
  SizeLives lives;
  constexpr std::uint64_t kGranules = 20'000;
  constexpr std::uint64_t kLive = 16 * 4096 * 100;  // a sixteenth is 200 MiB
  CHECK_FALSE(lives.fleeting(kGranules));
  const std::uint32_t born = lives.now();
  lives.allocated(2048 * 199);
  lives.freed(kGranules, born, kLive);
  CHECK(lives.fleeting(kGranules));
  CHECK_FALSE(lives.fleeting(kGranules + 1));
  lives.allocated(2048);
  lives.freed(kGranules, born, kLive);
  CHECK_FALSE(lives.fleeting(kGranules));
}
