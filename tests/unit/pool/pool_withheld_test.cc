// Withheld ranges of a slab: memory that serves elsewhere, or is not there.
#include <algorithm>
#include <map>
#include <random>
#include <vector>

#include "catch.h"
#include "pool/pool.h"

using namespace ration::pool;

namespace {

constexpr Address kBase = 0x7f0000000000;
constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

struct Fixture {
  Fixture() { REQUIRE(pool.add_slab({kBase, 64 * kMiB, 1}) == AddSlabOutcome::kAdded); }
  std::vector<Pool::Hole> holes() {
    std::vector<Pool::Hole> all;
    pool.each_hole(kBase, [&](const Pool::Hole &hole) { all.push_back(hole); });
    return all;
  }
  Pool pool;
};

}  // namespace

TEST_CASE_METHOD(Fixture, "a withheld range is in no block, no hole and no sum until it is restored") {
  REQUIRE(pool.withhold(kBase + 10 * kMiB, 4 * kMiB));
  CHECK(pool.check_invariants() == "");
  CHECK(pool.statistics().slab_bytes == 60 * kMiB);
  CHECK(pool.statistics().free_bytes == 60 * kMiB);
  CHECK(pool.statistics().retired_bytes == 0);
  CHECK(pool.statistics().holes == 2);
  CHECK(pool.statistics().largest_hole == 50 * kMiB);
  CHECK_FALSE(pool.find(kBase + 11 * kMiB));
  CHECK_FALSE(pool.free(kBase + 10 * kMiB));
  CHECK_FALSE(pool.retire(kBase + 10 * kMiB));
  CHECK_FALSE(pool.reclaim(kBase + 10 * kMiB));
  CHECK(pool.restore(kBase + 10 * kMiB) == 4 * kMiB);
  CHECK(pool.restore(kBase + 10 * kMiB) == 0);
  CHECK(pool.check_invariants() == "");
  CHECK(pool.statistics().largest_hole == 64 * kMiB);
}

TEST_CASE_METHOD(Fixture, "only free memory of one slab can be withheld") {
  REQUIRE(pool.add_slab({kBase + 64 * kMiB, 64 * kMiB, 2}) == AddSlabOutcome::kAdded);
  const AllocateOutcome block = pool.allocate(60 * kMiB);
  REQUIRE(block);
  CHECK_FALSE(pool.withhold(block.block.address + kMiB, kMiB));
  CHECK_FALSE(pool.withhold(kBase + 63 * kMiB, 2 * kMiB));
  CHECK_FALSE(pool.withhold(kBase - kMiB, kMiB));
  CHECK_FALSE(pool.withhold(kBase + 128 * kMiB, kMiB));
  CHECK_FALSE(pool.withhold(kBase + 1, kMiB));
  CHECK_FALSE(pool.withhold(kBase, 0));
  CHECK(pool.check_invariants() == "");
}

TEST_CASE_METHOD(Fixture, "holes are visited in address order") {
  for (int i = 0; i < 8; ++i) REQUIRE(pool.withhold(kBase + static_cast<std::uint64_t>(8 * i + 2) * kMiB, kMiB));
  const std::vector<Pool::Hole> all = holes();
  REQUIRE(all.size() == 9);
  CHECK(all.front().address == kBase);
  CHECK(all.front().bytes == 2 * kMiB);
  CHECK(all.back().bytes == 5 * kMiB);
  CHECK(std::is_sorted(all.begin(), all.end(), [](auto &one, auto &other) { return one.address < other.address; }));
}

TEST_CASE_METHOD(Fixture, "a split withheld range is restored in two steps") {
  REQUIRE(pool.withhold(kBase, 64 * kMiB));
  CHECK_FALSE(pool.allocate(1));
  REQUIRE(pool.split_withheld(kBase, 16 * kMiB));
  CHECK_FALSE(pool.split_withheld(kBase, 16 * kMiB));
  CHECK_FALSE(pool.split_withheld(kBase + kMiB, kMiB));
  CHECK(pool.check_invariants() == "");
  CHECK(pool.restore(kBase + 16 * kMiB) == 48 * kMiB);
  CHECK(pool.statistics().largest_hole == 48 * kMiB);
  CHECK(pool.restore(kBase) == 16 * kMiB);
  CHECK(pool.statistics().largest_hole == 64 * kMiB);
  CHECK(pool.check_invariants() == "");
}

TEST_CASE_METHOD(Fixture, "two withheld ranges side by side become one, and others do not") {
  REQUIRE(pool.withhold(kBase, 16 * kMiB));
  REQUIRE(pool.withhold(kBase + 16 * kMiB, 16 * kMiB));
  REQUIRE(pool.withhold(kBase + 40 * kMiB, 8 * kMiB));
  pool.join_withheld(kBase, kBase + 40 * kMiB);
  pool.join_withheld(kBase + 16 * kMiB, kBase + 32 * kMiB);
  pool.join_withheld(kBase, kBase + 16 * kMiB);
  CHECK(pool.check_invariants() == "");
  CHECK(pool.restore(kBase + 16 * kMiB) == 0);
  CHECK(pool.restore(kBase) == 32 * kMiB);
  CHECK(pool.restore(kBase + 40 * kMiB) == 8 * kMiB);
  CHECK(pool.statistics().largest_hole == 64 * kMiB);
}

TEST_CASE_METHOD(Fixture, "random blocks and withheld ranges never overlap and all return") {
  std::mt19937_64 random(7);
  const auto below = [&random](std::uint64_t n) { return random() % n; };
  std::map<Address, std::pair<std::uint64_t, bool>> held;  // bytes, withheld
  const auto split_or_join = [&] {
    auto at = held.begin();
    std::advance(at, below(held.size()));
    const std::uint64_t bytes = at->second.first;
    if (!at->second.second) return;
    if (const auto next = std::next(at);
        next != held.end() && next->second.second && at->first + bytes == next->first) {
      pool.join_withheld(at->first, next->first);
      at->second.first += next->second.first;
      held.erase(next);
    } else if (const std::uint64_t part = below(bytes / kUnitBytes) * kUnitBytes; part != 0) {
      REQUIRE(pool.split_withheld(at->first, part));
      at->second.first = part;
      held[at->first + part] = {bytes - part, true};
    }
  };
  for (int step = 0; step < 20000; ++step) {
    if (!held.empty() && below(4) == 0) split_or_join();
    if (below(5) < 2 && !held.empty()) {
      auto at = held.begin();
      std::advance(at, below(held.size()));
      if (at->second.second) {
        CHECK(pool.restore(at->first) == at->second.first);
      } else {
        CHECK(pool.free(at->first));
      }
      held.erase(at);
    } else if (below(2) == 0) {
      const AllocateOutcome outcome = pool.allocate(1 + below(kMiB));
      if (outcome) held[outcome.block.address] = {outcome.block.bytes, false};
    } else {
      const std::vector<Pool::Hole> all = holes();
      if (all.empty()) continue;
      const Pool::Hole hole = all[below(all.size())];
      const std::uint64_t units = 1 + below(hole.bytes / kUnitBytes);
      const std::uint64_t offset = below(hole.bytes / kUnitBytes - units + 1) * kUnitBytes;
      REQUIRE(pool.withhold(hole.address + offset, units * kUnitBytes));
      held[hole.address + offset] = {units * kUnitBytes, true};
    }
    if (step % 100 == 0) REQUIRE(pool.check_invariants() == "");
    Address end = 0;
    if (step % 100 == 0) {
      for (const auto &[address, what] : held) {
        REQUIRE(address >= end);
        end = address + what.first;
      }
    }
  }
  for (const auto &[address, what] : held) {
    if (what.second) {
      CHECK(pool.restore(address) == what.first);
    } else {
      CHECK(pool.free(address));
    }
  }
  CHECK(pool.check_invariants() == "");
  CHECK(pool.statistics().largest_hole == 64 * kMiB);
}
