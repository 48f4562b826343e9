#include "pool/pool.h"

#include <vector>

#include "catch.h"

using namespace ration::pool;

namespace {

constexpr Address kBase = 0x7f0000000000;
constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;

// One slab with exactly `bytes` of room.
void give(Pool &pool, std::uint64_t bytes, Address base = kBase, std::uint64_t id = 7) {
  REQUIRE(pool.add_slab({base, Pool::slab_bytes_for(bytes), id}) == AddSlabOutcome::kAdded);
}

Address take(Pool &pool, std::uint64_t bytes) {
  const AllocateOutcome outcome = pool.allocate(bytes);
  REQUIRE(outcome);
  REQUIRE(pool.check_invariants() == "");
  return outcome.block.address;
}

void put_back(Pool &pool, Address address) {
  REQUIRE(pool.free(address));
  REQUIRE(pool.check_invariants() == "");
}

}  // namespace

TEST_CASE("an empty pool has no room and no blocks") {
  Pool pool;
  const AllocateOutcome outcome = pool.allocate(1);
  CHECK(outcome.kind == AllocateOutcome::Kind::kNoRoom);
  CHECK(outcome.largest_free == 0);
  CHECK_FALSE(pool.find(kBase));
  CHECK_FALSE(pool.free(kBase));
  CHECK_FALSE(pool.wholly_free_slab());
  CHECK(pool.check_invariants() == "");
}

TEST_CASE("a block is rounded up to 512 bytes and names its slab") {
  Pool pool;
  give(pool, kMiB);
  const AllocateOutcome outcome = pool.allocate(513);
  REQUIRE(outcome);
  CHECK(outcome.block.bytes == 1024);
  CHECK(outcome.block.slab == 7);
  CHECK(outcome.block.address % kUnitBytes == 0);
}

TEST_CASE("a request of 0 bytes gets a unique address") {
  Pool pool;
  give(pool, kMiB);
  CHECK(take(pool, 0) != take(pool, 0));
}

TEST_CASE("a block can fill its slab") {
  for (const std::uint64_t bytes : {std::uint64_t{512}, 64 * kMiB}) {
    Pool pool;
    REQUIRE(pool.add_slab({kBase, bytes, 7}) == AddSlabOutcome::kAdded);
    CHECK(take(pool, bytes) == kBase);
    CHECK_FALSE(pool.allocate(1));
    CHECK(pool.find(kBase)->slab == 7);
    CHECK(pool.free(kBase));
    CHECK(pool.wholly_free_slab()->id == 7);
  }
}

TEST_CASE("blocks are aligned even where the slab is not") {
  for (const auto skew : std::initializer_list<std::uint64_t>{1, 256, 511}) {
    Pool pool;
    REQUIRE(pool.add_slab({kBase + skew, 4096 + kUnitBytes, 7}) == AddSlabOutcome::kAdded);
    const Address address = take(pool, 4096);
    CHECK(address % kUnitBytes == 0);
    CHECK(address > kBase + skew);
    CHECK(address + 4096 <= kBase + skew + 4096 + kUnitBytes);
  }
}

TEST_CASE("a request as large as the largest hole succeeds and one unit more does not") {
  for (const std::uint64_t bytes : {std::uint64_t{512}, kMiB + 512, 79 * kGiB, 141 * kGiB + 512, kMaximumBytes - 512}) {
    Pool pool;
    give(pool, bytes);
    CHECK(pool.statistics().largest_hole == bytes);
    const AllocateOutcome more = pool.allocate(bytes + 1);
    CHECK(more.kind == AllocateOutcome::Kind::kNoRoom);
    CHECK(more.largest_free == bytes);
    take(pool, bytes);
  }
}

TEST_CASE("the largest hole is found after any number of smaller ones in its bin") {
  Pool pool;
  const std::uint64_t large = 32 * kMiB;  // in one bin with the next 31 units; a bin search examines only eight holes
  std::vector<Address> walls;
  std::vector<Address> blocks;
  give(pool, 64 * (large + kUnitBytes) + 20 * kUnitBytes);
  for (int index = 0; index < 64; ++index) {
    blocks.push_back(take(pool, large + (index == 0 ? 16 * kUnitBytes : 0)));
  }
  // Every second block separates two holes: adjacent blocks leave no room for a separator of one unit.
  for (std::size_t index = 0; index < blocks.size(); index += 2) put_back(pool, blocks[index]);
  CHECK(pool.statistics().largest_hole >= large + 16 * kUnitBytes);
  while (pool.statistics().largest_hole >= large) take(pool, pool.statistics().largest_hole);
}

TEST_CASE("a size that would overflow is rejected") {
  Pool pool;
  give(pool, kMiB);
  for (const std::uint64_t bytes : {~std::uint64_t{0}, ~std::uint64_t{0} - 511, kMaximumBytes, kMaximumBytes + 1}) {
    CHECK(pool.allocate(bytes).kind == AllocateOutcome::Kind::kNoRoom);
  }
  CHECK(pool.statistics().used_bytes == 0);
}

TEST_CASE("freeing a neighbour merges both blocks") {
  Pool pool;
  give(pool, 3 * kMiB);
  const Address a = take(pool, kMiB);
  const Address b = take(pool, kMiB);
  const Address c = take(pool, kMiB);
  put_back(pool, a);
  put_back(pool, c);
  CHECK(pool.statistics().holes == 2);
  CHECK(pool.statistics().largest_hole == kMiB);
  put_back(pool, b);
  CHECK(pool.statistics().holes == 1);
  CHECK(pool.statistics().largest_hole == 3 * kMiB);
}

TEST_CASE("only the start of a live block can be freed, once") {
  Pool pool;
  give(pool, kMiB);
  const Address address = take(pool, 4096);
  for (const Address wrong : {address + 512, address + 1, address - 512, kBase, kBase - 1, Address{0}, ~Address{0}}) {
    CHECK(pool.free(wrong).kind == FreeOutcome::Kind::kNotABlock);
  }
  CHECK(pool.statistics().blocks == 1);
  take(pool, 4096);  // below it, so that the freed block's hole keeps its start
  CHECK(pool.free(address).bytes == 4096);
  CHECK(pool.free(address).kind == FreeOutcome::Kind::kNotABlock);
  CHECK(pool.check_invariants() == "");
}

TEST_CASE("an interior pointer finds its block, and only live blocks are found") {
  Pool pool;
  give(pool, kMiB);
  const Address address = take(pool, 1000);
  for (const auto offset : std::initializer_list<std::uint64_t>{0, 1, 512, 1023}) {
    REQUIRE(pool.find(address + offset));
    CHECK(pool.find(address + offset)->address == address);
    CHECK(pool.find(address + offset)->bytes == 1024);
  }
  CHECK_FALSE(pool.find(address + 1024));
  CHECK_FALSE(pool.find(address - 1));
  put_back(pool, address);
  CHECK_FALSE(pool.find(address));
}

TEST_CASE("statistics add up to the size of the slabs") {
  Pool pool;
  give(pool, kMiB);
  take(pool, 5000);
  const Statistics now = pool.statistics();
  CHECK(now.used_bytes == 5120);
  CHECK(now.used_bytes + now.free_bytes == now.slab_bytes);
  CHECK(now.blocks == 1);
  CHECK(now.slabs == 1);
  CHECK(now.metadata_bytes > 0);
}

TEST_CASE("adjacent slabs never merge") {
  Pool pool;
  give(pool, kMiB, kBase, 1);
  give(pool, kMiB, kBase + Pool::slab_bytes_for(kMiB), 2);
  CHECK(pool.statistics().largest_hole == kMiB);
  const Address a = take(pool, kMiB);
  const Address b = take(pool, kMiB);
  CHECK(pool.find(a)->slab != pool.find(b)->slab);
  put_back(pool, a);
  put_back(pool, b);
  CHECK(pool.statistics().largest_hole == kMiB);
}

TEST_CASE("a slab is removed only when no block in it is live") {
  Pool pool;
  give(pool, kMiB, kBase, 1);
  give(pool, kMiB, kBase + kGiB, 2);
  const Address address = take(pool, 512);
  const std::uint64_t busy = pool.find(address)->slab;
  const std::uint64_t idle = 3 - busy;
  CHECK_FALSE(pool.remove_slab(busy));
  REQUIRE(pool.wholly_free_slab());
  CHECK(pool.wholly_free_slab()->id == idle);
  CHECK(pool.remove_slab(idle));
  CHECK_FALSE(pool.remove_slab(idle));
  CHECK(pool.check_invariants() == "");
  CHECK_FALSE(pool.wholly_free_slab());
  put_back(pool, address);
  CHECK(pool.remove_slab(busy));
  CHECK(pool.check_invariants() == "");
  CHECK(pool.statistics().slab_bytes == 0);
  CHECK_FALSE(pool.allocate(1));
}

TEST_CASE("a slab that is too small, too large or overlaps another is rejected") {
  Pool pool;
  give(pool, kMiB);
  CHECK(pool.add_slab({kBase + kGiB, kUnitBytes - 1, 1}) == AddSlabOutcome::kTooSmall);
  CHECK(pool.add_slab({kBase + kGiB + 1, 2 * kUnitBytes - 2, 1}) == AddSlabOutcome::kTooSmall);
  CHECK(pool.add_slab({kBase + kGiB, 0, 1}) == AddSlabOutcome::kTooSmall);
  CHECK(pool.add_slab({kBase + kGiB, kMaximumBytes + 1, 1}) == AddSlabOutcome::kTooLarge);
  CHECK(pool.add_slab({~Address{0} - kMiB, 2 * kMiB, 1}) == AddSlabOutcome::kTooLarge);
  CHECK(pool.add_slab({kBase, kMiB, 1}) == AddSlabOutcome::kOverlaps);
  CHECK(pool.add_slab({kBase - kMiB, kMiB + 1, 1}) == AddSlabOutcome::kOverlaps);
  CHECK(pool.add_slab({kBase + kMiB - 1, kMiB, 1}) == AddSlabOutcome::kOverlaps);
  CHECK(pool.statistics().slabs == 1);
  CHECK(pool.check_invariants() == "");
}

TEST_CASE("the index stays in order while holes move across its separators", "[alone]") {
  Pool pool;
  REQUIRE(pool.add_slab({kMiB, 8192 * kMiB, 1}) == AddSlabOutcome::kAdded);
  std::vector<Address> blocks(1000);
  for (Address &block : blocks) block = take(pool, kMiB);
  for (std::size_t step = 0; step < 40'000; ++step) {
    Address &block = blocks[step * 7919 % blocks.size()];
    REQUIRE(pool.free(block));
    block = take(pool, kMiB / 2 + step % 2000 * 104729 % kMiB);
    if (step % 32 == 0) REQUIRE(pool.check_invariants() == "");
  }
}

TEST_CASE("after a reserve, allocations take no more host memory") {
  Pool pool;
  give(pool, kGiB);
  REQUIRE(pool.reserve(10'000));
  const std::uint64_t reserved = pool.statistics().metadata_bytes;
  for (int index = 0; index < 10'000; ++index) REQUIRE(pool.allocate(4096));
  CHECK(pool.statistics().metadata_bytes == reserved);
}

TEST_CASE("host memory follows the number of blocks, not the size of the pool") {
  Pool small;
  Pool large;
  give(small, 100 * kMiB);
  give(large, 200'000 * kGiB);
  for (int index = 0; index < 1000; ++index) {
    REQUIRE(small.allocate(4096));
    REQUIRE(large.allocate(4096));
  }
  CHECK(large.statistics().metadata_bytes <= small.statistics().metadata_bytes + 1024);
}

TEST_CASE("host memory of freed blocks serves new ones") {
  Pool pool;
  give(pool, 20'001 * kUnitBytes);
  std::uint64_t after_first = 0;
  for (int round = 0; round < 3; ++round) {
    std::vector<Address> blocks;
    for (int index = 0; index < 20'000; ++index) blocks.push_back(pool.allocate(kUnitBytes).block.address);
    for (std::size_t index = 0; index < blocks.size(); index += 2) REQUIRE(pool.free(blocks[index]));
    CHECK(pool.check_invariants() == "");
    for (std::size_t index = 1; index < blocks.size(); index += 2) REQUIRE(pool.free(blocks[index]));
    if (round == 0) after_first = pool.statistics().metadata_bytes;
    CHECK(pool.statistics().metadata_bytes <= after_first);
  }
}
