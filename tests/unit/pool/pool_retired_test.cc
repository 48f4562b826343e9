// Retired blocks: freed by the program while the device may still use them. Lists of live blocks and slabs.
#include <vector>

#include "catch.h"
#include "pool/pool.h"

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
  REQUIRE(outcome.block.requested == bytes);
  REQUIRE(pool.check_invariants() == "");
  return outcome.block.address;
}

void retire(Pool &pool, Address address, std::uint64_t bytes) {
  const FreeOutcome outcome = pool.retire(address);
  REQUIRE(outcome);
  REQUIRE(outcome.bytes == bytes);
  REQUIRE(pool.check_invariants() == "");
}

std::vector<Address> live_in(const Pool &pool, Address from, std::size_t count) {
  std::vector<Block> blocks(count);
  blocks.resize(pool.live_blocks(from, blocks.data(), count));
  std::vector<Address> addresses;
  for (const Block &block : blocks) addresses.push_back(block.address);
  return addresses;
}

}  // namespace

TEST_CASE("a retired block is no longer found and its place is not reused") {
  Pool pool;
  give(pool, 2 * kMiB);
  const Address address = take(pool, kMiB);
  retire(pool, address, kMiB);
  CHECK_FALSE(pool.find(address));
  CHECK_FALSE(pool.find(address + 1000));
  const Statistics now = pool.statistics();
  CHECK(now.used_bytes == 0);
  CHECK(now.blocks == 0);
  CHECK(now.retired_bytes == kMiB);
  CHECK(now.retired_blocks == 1);
  CHECK(now.free_bytes == kMiB);
  CHECK(now.largest_hole == kMiB);
  CHECK_FALSE(pool.allocate(kMiB + 1));
  CHECK(take(pool, kMiB) != address);
  CHECK_FALSE(pool.allocate(1));
}

TEST_CASE("a reclaimed block becomes a hole at once and merges with both neighbours") {
  Pool pool;
  give(pool, 3 * kMiB);
  const Address a = take(pool, kMiB);
  const Address b = take(pool, kMiB);
  const Address c = take(pool, kMiB);
  REQUIRE(pool.free(a));
  REQUIRE(pool.free(c));
  retire(pool, b, kMiB);
  CHECK(pool.statistics().holes == 2);
  CHECK(pool.statistics().largest_hole == kMiB);
  CHECK_FALSE(pool.allocate(kMiB + 1));
  CHECK(pool.reclaim(b).bytes == kMiB);
  CHECK(pool.check_invariants() == "");
  CHECK(pool.statistics().holes == 1);
  CHECK(pool.statistics().retired_blocks == 0);
  CHECK(pool.statistics().retired_bytes == 0);
  take(pool, 3 * kMiB);
}

TEST_CASE("only the start of a live block can be retired, once") {
  Pool pool;
  give(pool, kMiB);
  const Address address = take(pool, 4096);
  for (const Address wrong : {address + 512, address + 1, address - 512, kBase, kBase - 1, Address{0}, ~Address{0}}) {
    CHECK(pool.retire(wrong).kind == FreeOutcome::Kind::kNotABlock);
  }
  CHECK(pool.find(address));
  retire(pool, address, 4096);
  CHECK_FALSE(pool.retire(address));
  CHECK_FALSE(pool.free(address));
  CHECK(pool.statistics().retired_blocks == 1);
  CHECK(pool.statistics().retired_bytes == 4096);
  CHECK(pool.check_invariants() == "");
}

TEST_CASE("a block above the size limit of retire stays live") {
  Pool pool;
  give(pool, kMiB);
  const Address address = take(pool, 4000);
  CHECK(pool.retire(address, 4095).kind == FreeOutcome::Kind::kTooLarge);
  CHECK(pool.find(address));
  CHECK(pool.statistics().retired_blocks == 0);
  CHECK(pool.check_invariants() == "");
  CHECK(pool.retire(address, 4096).bytes == 4096);
  CHECK(pool.retire(address, 0).kind == FreeOutcome::Kind::kNotABlock);
}

TEST_CASE("only the start of a retired block can be reclaimed, once") {
  Pool pool;
  give(pool, kMiB);
  const Address other = take(pool, 4096);
  const Address address = take(pool, 4096);
  CHECK_FALSE(pool.reclaim(address));
  CHECK(pool.find(address));
  retire(pool, address, 4096);
  for (const Address wrong : {address + 512, address + 1, address - 512, other, kBase, Address{0}, ~Address{0}}) {
    CHECK(pool.reclaim(wrong).kind == FreeOutcome::Kind::kNotABlock);
  }
  CHECK(pool.statistics().retired_blocks == 1);
  CHECK(pool.reclaim(address));
  CHECK_FALSE(pool.reclaim(address));
  CHECK(pool.statistics().used_bytes == 4096);
  CHECK(pool.check_invariants() == "");
}

TEST_CASE("a slab with a retired block is not wholly free") {
  Pool pool;
  give(pool, kMiB);
  const Address address = take(pool, kMiB);
  retire(pool, address, kMiB);
  CHECK_FALSE(pool.wholly_free_slab());
  CHECK_FALSE(pool.remove_slab(7));
  REQUIRE(pool.reclaim(address));
  REQUIRE(pool.wholly_free_slab());
  CHECK(pool.wholly_free_slab()->address == kBase);
  CHECK(pool.remove_slab(7));
  CHECK(pool.check_invariants() == "");
}

TEST_CASE("a retired block does not disturb the bins of large holes") {
  Pool pool;
  give(pool, 128 * kMiB);
  const Address a = take(pool, 40 * kMiB + 1);
  const Address b = take(pool, 40 * kMiB);
  retire(pool, a, 40 * kMiB + 512);
  REQUIRE(pool.free(b));
  CHECK(pool.statistics().largest_hole == 88 * kMiB - 512);
  REQUIRE(pool.reclaim(a));
  CHECK(pool.check_invariants() == "");
  take(pool, 128 * kMiB);
}

TEST_CASE("a block keeps the exact size of its request") {
  const std::uint64_t sizes[] = {
      0, 1, 511, 512, 513, 1023, 1024, 100'001, 32 * kMiB - 1, 32 * kMiB + 1, 40 * kMiB + 511};
  for (const std::uint64_t size : sizes) {
    CAPTURE(size);
    Pool pool;
    give(pool, units_of(size) * kUnitBytes);  // the whole hole
    CHECK(pool.find(take(pool, size))->requested == size);
  }
  Pool pool;
  give(pool, kGiB);
  std::vector<Address> blocks;
  for (int round = 0; round < 3; ++round) {  // from new holes, then from those of freed blocks
    blocks.clear();
    for (const std::uint64_t size : sizes) blocks.push_back(take(pool, size + 7 * static_cast<unsigned>(round)));
    for (std::size_t index = 0; index < blocks.size(); ++index) {
      const std::optional<Block> found = pool.find(blocks[index]);
      REQUIRE(found);
      CHECK(found->requested == sizes[index] + 7 * static_cast<unsigned>(round));
      REQUIRE(pool.retire(blocks[index]));
      REQUIRE(pool.reclaim(blocks[index]));
      REQUIRE(pool.check_invariants() == "");
    }
  }
}

TEST_CASE("live blocks are listed in address order, without holes and retired ones") {
  Pool pool;
  give(pool, 8 * kUnitBytes, kBase, 1);
  give(pool, 8 * kUnitBytes, kBase + kGiB, 2);
  CHECK(live_in(pool, 0, 4).empty());
  for (int index = 0; index < 16; ++index) take(pool, 500);
  for (const Address base : {kBase, kBase + kGiB}) {
    retire(pool, base + kUnitBytes, kUnitBytes);
    REQUIRE(pool.free(base + 4 * kUnitBytes));
  }
  std::vector<Address> expected;
  for (const Address base : {kBase, kBase + kGiB}) {
    for (const auto index : {0, 2, 3, 5, 6, 7}) expected.push_back(base + static_cast<unsigned>(index) * kUnitBytes);
  }
  CHECK(live_in(pool, 0, 100) == expected);
  CHECK(live_in(pool, expected[3], 2) == std::vector<Address>{expected[3], expected[4]});
  CHECK(live_in(pool, expected[3] + 1, 1) == std::vector<Address>{expected[4]});
  CHECK(live_in(pool, expected.back() + 1, 4).empty());
  CHECK(live_in(pool, ~Address{0}, 4).empty());
  CHECK(live_in(pool, 0, 0).empty());
  Block last{};
  REQUIRE(pool.live_blocks(expected.back(), &last, 1) == 1);
  CHECK(last.bytes == 512);
  CHECK(last.requested == 500);
  CHECK(last.slab == 2);
}

TEST_CASE("live blocks can be listed a few at a time") {
  Pool pool;
  give(pool, kGiB);
  std::size_t expected = 0;
  for (std::uint64_t index = 0; index < 3000; ++index) {
    const Address address = take(pool, 1 + index);
    if (index % 3 != 0) {
      ++expected;
    } else {
      REQUIRE(pool.retire(address));
    }
  }
  std::vector<Address> all;
  for (Address from = 0;;) {
    const std::vector<Address> some = live_in(pool, from, 7);
    if (some.empty()) break;
    for (const Address address : some) {
      REQUIRE((all.empty() || all.back() < address));
      REQUIRE(pool.find(address)->address == address);
      all.push_back(address);
    }
    from = all.back() + 1;
  }
  CHECK(all.size() == expected);
}

TEST_CASE("slabs are listed in address order") {
  Pool pool;
  give(pool, kMiB, kBase + kGiB, 1);
  give(pool, kMiB, kBase, 2);
  give(pool, kMiB, kBase + 2 * kGiB, 3);
  const auto listed = [&pool](Address from, std::size_t count) {
    std::vector<Slab> slabs(count);
    slabs.resize(pool.slabs(from, slabs.data(), count));
    std::vector<std::uint64_t> ids;
    for (const Slab &slab : slabs) ids.push_back(slab.id);
    return ids;
  };
  CHECK(listed(0, 9) == std::vector<std::uint64_t>{2, 1, 3});
  CHECK(listed(kBase, 2) == std::vector<std::uint64_t>{2, 1});
  CHECK(listed(kBase + 1, 2) == std::vector<std::uint64_t>{1, 3});
  CHECK(listed(kBase + 2 * kGiB + 1, 2).empty());
  CHECK(listed(0, 0).empty());
}

TEST_CASE("retiring and reclaiming take no host memory") {
  Pool pool;
  give(pool, kGiB);
  std::vector<Address> blocks;
  for (int index = 0; index < 2000; ++index) blocks.push_back(take(pool, 4096));
  const std::uint64_t before = pool.statistics().metadata_bytes;
  for (const Address address : blocks) REQUIRE(pool.retire(address));
  CHECK(pool.statistics().metadata_bytes == before);
  for (const Address address : blocks) REQUIRE(pool.reclaim(address));
  CHECK(pool.statistics().metadata_bytes == before);
  CHECK(pool.check_invariants() == "");
}
