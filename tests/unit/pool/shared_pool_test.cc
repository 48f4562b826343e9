#include "pool/shared_pool.h"

#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "catch.h"

using namespace ration::pool;

namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

// Slabs at ever new addresses, up to a budget. With a pool to call back it keeps retired blocks, as a quarantine does.
class Supply final : public Upstream {
 public:
  explicit Supply(std::uint64_t budget) : budget_(budget) {}

  std::vector<Slab> grow(const GrowthWish &wish) noexcept override {
    const std::lock_guard guard(mutex_);
    if (wish.bytes > budget_) return {};
    budget_ -= wish.bytes;
    const Slab slab{next_, given_too_small ? kUnitBytes - 1 : wish.bytes, ++grown};
    next_ += wish.bytes + kMiB;
    slabs[slab.id] = wish.bytes;
    return {slab};
  }
  void shrink(const Slab &slab) noexcept override {
    const std::lock_guard guard(mutex_);
    budget_ += slabs.at(slab.id);
    slabs.erase(slab.id);
  }
  bool collect() noexcept override { return reclaim_all_but(dirty); }
  bool wait() noexcept override {
    ++waited;
    return reclaim_all_but(0);
  }
  // A free that the device may not have reached yet.
  bool retire(Address address) {
    const std::lock_guard guard(held_mutex_);
    if (!pool->retire(address)) return false;
    held_.push_back(address);
    return true;
  }

  SharedPool *pool = nullptr;
  std::map<std::uint64_t, std::uint64_t> slabs;
  std::uint64_t grown = 0;
  std::atomic<int> waited = 0;
  bool given_too_small = false;
  std::size_t dirty = 0;  // number of the last retired blocks that are not clean yet
  std::function<void(Address)> before_reclaim;

 private:
  bool reclaim_all_but(std::size_t kept) {
    const std::lock_guard guard(held_mutex_);
    bool any = false;
    for (; held_.size() > kept; held_.erase(held_.begin())) {
      if (before_reclaim) before_reclaim(held_.front());
      any = pool->reclaim(held_.front()) || any;
    }
    return any;
  }

  std::mutex held_mutex_;
  std::vector<Address> held_;
  std::mutex mutex_;
  std::uint64_t budget_;
  Address next_ = 0x7f0000000000;
};

}  // namespace

TEST_CASE("a pool without room grows by what the request needs") {
  Supply supply(10 * kMiB);
  SharedPool pool;
  REQUIRE(pool.allocate(kMiB, supply));
  CHECK(supply.slabs.size() == 1);
  CHECK(supply.slabs.at(1) == kMiB);
  CHECK(pool.check_invariants() == "");
}

TEST_CASE("a pool that cannot grow reports its largest hole") {
  Supply supply(2 * kMiB);
  SharedPool pool;
  const AllocateOutcome first = pool.allocate(kMiB, supply);
  REQUIRE(first);
  REQUIRE(pool.free(first.block.address));
  const AllocateOutcome outcome = pool.allocate(3 * kMiB, supply);
  CHECK(outcome.kind == AllocateOutcome::Kind::kNoRoom);
  CHECK(outcome.largest_free == kMiB);
}

TEST_CASE("the largest size there is is refused, and leaves the pool as it was") {
  Supply supply(2 * kMiB);
  SharedPool pool;
  REQUIRE(pool.allocate(kMiB, supply));
  CHECK(pool.allocate(UINT64_MAX, supply).kind == AllocateOutcome::Kind::kNoRoom);
  CHECK(pool.check_invariants() == "");
  CHECK(pool.allocate(kMiB, supply));
}

TEST_CASE("blocks that become clean are used before the pool grows") {
  Supply supply(10 * kMiB);
  SharedPool pool;
  supply.pool = &pool;
  const AllocateOutcome block = pool.allocate(kMiB, supply);
  REQUIRE(block);
  REQUIRE(supply.retire(block.block.address));
  REQUIRE(pool.allocate(kMiB, supply));
  CHECK(supply.grown == 1);
}

TEST_CASE("a pool with room never calls its upstream") {
  Supply supply(10 * kMiB);
  SharedPool pool;
  REQUIRE(pool.add_slab({0x100000000, 2 * kMiB, 99}) == AddSlabOutcome::kAdded);
  REQUIRE(pool.allocate(kMiB, supply));
  CHECK(supply.grown == 0);
  CHECK(supply.waited == 0);
}

TEST_CASE("an unusable slab is returned at once") {
  Supply supply(10 * kMiB);
  supply.given_too_small = true;
  SharedPool pool;
  CHECK(pool.allocate(kMiB, supply).kind == AllocateOutcome::Kind::kNoRoom);
  CHECK(supply.slabs.empty());
}

TEST_CASE("a request that no slab could hold is refused without growing") {
  Supply supply(~std::uint64_t{0});
  SharedPool pool;
  for (const std::uint64_t bytes : {~std::uint64_t{0}, kMaximumBytes, kMaximumBytes - kUnitBytes}) {
    CHECK(pool.allocate(bytes, supply).kind == AllocateOutcome::Kind::kNoRoom);
  }
  CHECK(supply.grown == 0);
}

TEST_CASE("giving back returns the free slabs and keeps the one in use") {
  Supply supply(10 * kMiB);
  SharedPool pool;
  std::vector<Address> blocks;
  for (int index = 0; index < 3; ++index) blocks.push_back(pool.allocate(kMiB, supply).block.address);
  REQUIRE(pool.free(blocks[0]));
  REQUIRE(pool.free(blocks[2]));
  CHECK(pool.give_back(supply) == 2 * kMiB);
  CHECK(supply.slabs.size() == 1);
  CHECK(pool.find(blocks[1]));
  CHECK_FALSE(pool.slab_of(blocks[0]));
  CHECK(pool.check_invariants() == "");
}

TEST_CASE("threads that allocate, retire and free at once never share a byte") {
  Supply supply(kMiB);  // less than one thread's peak, so that threads must wait under any schedule
  SharedPool pool;
  supply.pool = &pool;
  supply.dirty = 8;
  constexpr int kThreads = 4;
  std::mutex mutex;
  std::map<Address, std::uint64_t> taken;  // live or retired blocks, by the threads' records
  std::atomic<int> wrong = 0;
  const auto forget = [&](Address address) {
    const std::lock_guard guard(mutex);
    taken.erase(address);
  };
  const auto remember = [&](const Block &block) {
    const std::lock_guard guard(mutex);
    const auto [place, fresh] = taken.emplace(block.address, block.bytes);
    const auto after = std::next(place);
    if (!fresh || (after != taken.end() && place->first + place->second > after->first)) ++wrong;
    if (place != taken.begin() && std::prev(place)->first + std::prev(place)->second > place->first) ++wrong;
  };
  supply.before_reclaim = forget;
  const auto live_a_life = [&](std::uint64_t seed) {
    std::vector<Address> mine;
    for (std::uint64_t round = 0; round < 4000; ++round) {
      const std::uint64_t bytes = 512 + (round * 7919 + seed * 104729) % 100'000;
      if (mine.size() < 16) {
        if (const AllocateOutcome outcome = pool.allocate(bytes, supply)) {
          remember(outcome.block);
          mine.push_back(outcome.block.address);
          continue;
        }
      }
      if (mine.empty()) continue;
      const Address address = std::exchange(mine[round % mine.size()], mine.back());
      mine.pop_back();
      if (round % 3 == 0) {
        forget(address);
        if (!pool.free(address)) ++wrong;
      } else if (!supply.retire(address)) {
        ++wrong;
      }
      if (round % 64 == 0) (void)pool.give_back(supply);
    }
  };
  {
    std::vector<std::jthread> threads;
    for (std::uint64_t seed = 0; seed < kThreads; ++seed) threads.emplace_back(live_a_life, seed);
  }
  CHECK(wrong == 0);
  CHECK(supply.waited > 0);
  CHECK(pool.check_invariants() == "");
  (void)supply.wait();
  CHECK(pool.statistics().retired_blocks == 0);
  CHECK(pool.statistics().blocks == taken.size());
  for (const auto &[address, bytes] : taken) CHECK(pool.free(address));
  (void)pool.give_back(supply);
  CHECK(supply.slabs.empty());
  CHECK(pool.statistics().slabs == 0);
}

TEST_CASE("several blocks are reclaimed under one lock, and others are left alone") {
  SharedPool pool;
  REQUIRE(pool.add_slab({kMiB, kMiB, 1}) == AddSlabOutcome::kAdded);
  Supply none(0);
  Address addresses[4];
  for (Address &address : addresses) address = pool.allocate(1024, none).block.address;
  for (const int i : {0, 1, 3}) REQUIRE(pool.retire(addresses[i]));
  const SharedPool::Reclaimed reclaimed = pool.reclaim(addresses, 4);
  CHECK(reclaimed.blocks == 3);
  CHECK(reclaimed.bytes == 3 * 1024);
  CHECK(pool.statistics().retired_blocks == 0);
  CHECK(pool.statistics().blocks == 1);
  CHECK(pool.find(addresses[2]));
}

TEST_CASE("a caller that holds the pool's lock keeps others out") {
  SharedPool pool;
  REQUIRE(pool.add_slab({kMiB, kMiB, 1}) == AddSlabOutcome::kAdded);
  NoUpstream none;
  REQUIRE(pool.allocate(1024, none));  // obtains the host memory for the next one
  std::atomic<bool> done{false};
  std::thread other;
  {
    const Guard guard(pool.mutex());
    const AllocateOutcome outcome = pool.allocate_locked(1024);  // would block for ever if the pool locked by itself
    REQUIRE(outcome);
    other = std::thread([&, address = outcome.block.address] { done = pool.find(address).has_value(); });
    for (int turn = 0; turn < 2000; ++turn) std::this_thread::yield();
    CHECK_FALSE(done);
    CHECK(pool.retire_locked(outcome.block.address));
  }
  other.join();
  CHECK_FALSE(done);  // its find() ran after the retirement
}

TEST_CASE("an allocation under the caller's lock is refused where it would need host memory") {
  SharedPool pool;
  NoUpstream none;
  REQUIRE(pool.add_slab({kMiB, 64 * kMiB, 1}) == AddSlabOutcome::kAdded);
  int refused = 0;
  for (int blocks = 0; blocks < 5000; ++blocks) {
    const std::uint64_t before = pool.statistics().metadata_bytes;
    AllocateOutcome outcome{};
    {
      const Guard guard(pool.mutex());
      outcome = pool.allocate_locked(512);
    }
    CHECK(pool.statistics().metadata_bytes == before);
    if (!outcome) {
      CHECK(outcome.kind == AllocateOutcome::Kind::kNoHostMemory);
      REQUIRE(pool.allocate(512, none));
      ++refused;
    }
  }
  CHECK(refused > 5);
  CHECK(refused < 500);  // a pool that grows obtains host memory for several blocks at once
}
