// Several threads without room: which one grows, which ones wait, and when a request is refused.
#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "catch.h"
#include "pool/shared_pool.h"

using namespace ration::pool;

namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

// An upstream with scripted calls. By default nothing becomes clean, and slabs are granted up to a budget.
class Script final : public Upstream {
 public:
  explicit Script(std::uint64_t budget) : budget_(budget) {}

  bool collect() noexcept override {
    ++collected;
    return on_collect && on_collect();
  }
  std::vector<Slab> grow(const GrowthWish &wish) noexcept override {
    ++asked;
    if (++growing > 1) ++grown_together;
    if (before_grow) before_grow();
    const std::optional<Slab> slab = take(wish.bytes);
    if (!slab && on_refusal) on_refusal();
    --growing;
    return slab ? std::vector<Slab>{*slab} : std::vector<Slab>();
  }
  void shrink(const Slab &slab) noexcept override {
    if (on_shrink) on_shrink();
    const std::lock_guard guard(mutex_);
    budget_ += slab.bytes;
  }
  bool wait() noexcept override {
    ++waited;
    return on_wait && on_wait();
  }

  std::function<bool()> on_collect, on_wait;
  std::function<void()> before_grow, on_refusal, on_shrink;
  std::uint64_t least_slab_bytes = 0;
  std::atomic<int> collected = 0, asked = 0, granted = 0, waited = 0;
  std::atomic<int> growing = 0, grown_together = 0;

 private:
  std::optional<Slab> take(std::uint64_t bytes) {
    const std::lock_guard guard(mutex_);
    bytes = std::max(bytes, least_slab_bytes);
    if (bytes > budget_) return std::nullopt;
    budget_ -= bytes;
    const Slab slab{next_, bytes, static_cast<std::uint64_t>(++granted)};
    next_ += bytes + kMiB;
    return slab;
  }

  std::mutex mutex_;
  std::uint64_t budget_;
  Address next_ = 0x7f0000000000;
};

// Opens once, for all threads.
class Gate {
 public:
  void open() {
    const std::lock_guard guard(mutex_);
    open_ = true;
    changed_.notify_all();
  }
  void pass() {
    std::unique_lock held(mutex_);
    changed_.wait(held, [this] { return open_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = false;
};

}  // namespace

TEST_CASE("threads that miss together grow once and no request is refused") {
  constexpr int kThreads = 8;
  for (int round = 0; round < 50; ++round) {
    Script script(64 * kMiB);
    script.least_slab_bytes = 64 * kMiB;
    SharedPool pool;
    Gate all_missed;
    std::atomic<int> refused = 0;
    script.on_collect = [&] {
      if (script.collected == kThreads) all_missed.open();
      return false;
    };
    script.before_grow = [&] { all_missed.pass(); };
    {
      std::vector<std::jthread> threads;
      for (int thread = 0; thread < kThreads; ++thread) {
        threads.emplace_back([&] { refused += pool.allocate(kMiB, script) ? 0 : 1; });
      }
    }
    REQUIRE(refused == 0);
    REQUIRE(script.asked == 1);
    REQUIRE(script.waited == 0);
    REQUIRE(pool.check_invariants() == "");
  }
}

TEST_CASE("threads that each need a slab grow one after another and no request is refused") {
  constexpr int kThreads = 8;
  for (int round = 0; round < 50; ++round) {
    Script script(kThreads * Pool::slab_bytes_for(kMiB));
    SharedPool pool;
    std::atomic<int> refused = 0;
    {
      std::vector<std::jthread> threads;
      for (int thread = 0; thread < kThreads; ++thread) {
        threads.emplace_back([&] { refused += pool.allocate(kMiB, script) ? 0 : 1; });
      }
    }
    REQUIRE(refused == 0);
    REQUIRE(script.granted == kThreads);
    REQUIRE(script.grown_together == 0);
  }
}

TEST_CASE("a thread that is refused lets the next one try") {
  constexpr int kThreads = 6;
  Script script(0);
  SharedPool pool;
  std::atomic<int> refused = 0;
  {
    std::vector<std::jthread> threads;
    for (int thread = 0; thread < kThreads; ++thread) {
      threads.emplace_back([&] { refused += pool.allocate(kMiB, script) ? 0 : 1; });
    }
  }
  CHECK(refused == kThreads);
  CHECK(script.asked == kThreads);
  CHECK(script.grown_together == 0);
}

TEST_CASE("a thread that missed before another's growth ended uses that growth") {
  Script script(64 * kMiB);
  script.least_slab_bytes = 32 * kMiB;
  SharedPool pool;
  bool first = true;
  script.on_collect = [&] {
    if (!std::exchange(first, false)) return false;
    std::jthread([&] { CHECK(pool.allocate(kMiB, script)); }).join();
    return false;
  };
  CHECK(pool.allocate(kMiB, script));
  CHECK(script.asked == 1);
}

TEST_CASE("a request waits for slabs in transit to the upstream") {
  Script script(Pool::slab_bytes_for(4 * kMiB));
  SharedPool pool;
  const AllocateOutcome small = pool.allocate(kMiB, script);
  REQUIRE(small);
  REQUIRE(pool.free(small.block.address));
  Gate leaving, refused;
  script.on_shrink = [&] {
    leaving.open();
    refused.pass();
    for (int turn = 0; turn < 1000 && script.waited == 0; ++turn) std::this_thread::yield();  // time for a wrong retry
  };
  script.on_refusal = [&] { refused.open(); };
  std::jthread giver([&] { (void)pool.give_back(script); });
  leaving.pass();
  CHECK(pool.allocate(4 * kMiB, script));
  CHECK(script.waited == 0);
}

TEST_CASE("a merge replaces the wholly free slabs by one, and leaves the others") {
  Script script(64 * kMiB);
  SharedPool pool;
  const AllocateOutcome kept = pool.allocate(3 * kMiB, script);
  for (const std::uint64_t bytes : {5 * kMiB, 7 * kMiB}) {
    REQUIRE(pool.add_slab(script.grow({bytes}).front()) == AddSlabOutcome::kAdded);
  }
  REQUIRE(pool.statistics().slabs == 3);
  CHECK(pool.merge(script));
  CHECK(pool.statistics().slabs == 2);
  CHECK(pool.has_hole(12 * kMiB));
  CHECK(pool.find(kept.block.address));
  CHECK(pool.check_invariants() == "");
  script.before_grow = [&] { CHECK_FALSE(pool.merge(script)); };  // another thread's growth is not disturbed
  CHECK(pool.allocate(20 * kMiB, script));
}

TEST_CASE("a merge that gets no slab leaves the pool to grow") {
  Script script(64 * kMiB);
  SharedPool pool;
  CHECK_FALSE(pool.merge(script));
  REQUIRE(pool.add_slab(script.grow({5 * kMiB}).front()) == AddSlabOutcome::kAdded);
  script.before_grow = [&] { script.least_slab_bytes = 100 * kMiB; };
  CHECK(pool.merge(script));
  CHECK(pool.statistics().slabs == 0);
  script.before_grow = {};
  script.least_slab_bytes = 0;
  CHECK(pool.allocate(kMiB, script));
}

TEST_CASE("no other thread places a block in a slab that is being merged") {
  Script script(64 * kMiB);
  SharedPool pool;
  for (int slab = 0; slab < 2; ++slab) {
    REQUIRE(pool.add_slab(script.grow({8 * kMiB}).front()) == AddSlabOutcome::kAdded);
  }
  Gate shrinking;
  std::atomic<bool> served = false;
  std::jthread other([&] {
    shrinking.pass();
    const AllocateOutcome outcome = pool.allocate(9 * kMiB, script);
    served = bool(outcome);
  });
  script.on_shrink = [&] { shrinking.open(); };
  CHECK(pool.merge(script));
  other.join();
  CHECK(served);
  CHECK(pool.statistics().slabs == 1);
}

TEST_CASE("slabs that the grower gives back help it, and cause no second attempt where they do not suffice") {
  Script script(Pool::slab_bytes_for(4 * kMiB));
  SharedPool pool;
  script.before_grow = [&] { (void)pool.give_back(script); };
  const AllocateOutcome small = pool.allocate(kMiB, script);
  REQUIRE(small);
  REQUIRE(pool.free(small.block.address));
  script.asked = 0;
  CHECK_FALSE(pool.allocate(5 * kMiB, script));
  CHECK(script.asked == 1);
  CHECK(pool.statistics().slabs == 0);
  CHECK(pool.allocate(4 * kMiB, script));
}

TEST_CASE("the pool collects clean blocks first, then grows, then waits") {
  Script script(64 * kMiB);
  SharedPool pool;
  const AllocateOutcome block = pool.allocate(kMiB, script);
  REQUIRE(pool.retire(block.block.address));
  script.on_wait = [&] { return static_cast<bool>(pool.reclaim(block.block.address)); };
  REQUIRE(pool.allocate(kMiB, script));
  CHECK(script.granted == 2);
  CHECK(script.waited == 0);
  script.on_collect = script.on_wait;
  REQUIRE(pool.allocate(kMiB, script));
  CHECK(script.granted == 2);
  CHECK(script.waited == 0);
}

TEST_CASE("a request that misses searches once before the pool changes") {
  Script script(4 * kMiB - 512);
  script.least_slab_bytes = 4 * kMiB - 512;
  SharedPool pool;
  CHECK(pool.allocate(2 * kMiB, script));
  CHECK(pool.failed_searches() == 1);  // then it grew, and found room
  CHECK(!pool.allocate(2 * kMiB, script));
  CHECK(!pool.allocate(3 * kMiB, script));
  CHECK(pool.failed_searches() == 2);  // a larger request cannot fit where a smaller one did not
  const AllocateOutcome small = pool.allocate(kMiB, script);
  REQUIRE(small);
  const std::uint64_t largest = pool.allocate(2 * kMiB, script).largest_free;
  CHECK(largest == pool.statistics().largest_hole);  // of now, not of the search
  CHECK(pool.failed_searches() == 2);
  CHECK(pool.free(small.block.address));
  CHECK(!pool.allocate(2 * kMiB, script));
  CHECK(pool.failed_searches() == 3);
  script.on_collect = [&, freed = false]() mutable { return std::exchange(freed, true) ? false : true; };
  CHECK(!pool.allocate(2 * kMiB, script));
  CHECK(pool.failed_searches() == 3);  // what was said to be reclaimed was not of this pool
}

TEST_CASE("a request waits as long as waiting reclaims memory, and is then refused") {
  Script script(Pool::slab_bytes_for(4 * kMiB));
  script.least_slab_bytes = Pool::slab_bytes_for(4 * kMiB);
  SharedPool pool;
  std::vector<Address> retired;
  for (int index = 0; index < 4; ++index) {
    retired.push_back(pool.allocate(kMiB, script).block.address);
    REQUIRE(pool.retire(retired.back()));
  }
  script.on_wait = [&] {  // the oldest epoch, then the next
    if (retired.empty()) return false;
    const Address oldest = retired.front();
    retired.erase(retired.begin());
    return static_cast<bool>(pool.reclaim(oldest));
  };
  const AllocateOutcome outcome = pool.allocate(3 * kMiB, script);
  CHECK(outcome);
  CHECK(script.waited == 3);
  const AllocateOutcome refused = pool.allocate(2 * kMiB, script);
  CHECK(refused.kind == AllocateOutcome::Kind::kNoRoom);
  CHECK(refused.largest_free == kMiB);
  CHECK(script.waited == 5);
}

TEST_CASE("blocks that other threads free during a failed growth are used") {
  for (const bool while_growing : {true, false}) {
    CAPTURE(while_growing);
    Script script(Pool::slab_bytes_for(kMiB));
    SharedPool pool;
    const AllocateOutcome block = pool.allocate(kMiB, script);
    const auto free = [&] { CHECK(pool.free(block.block.address)); };
    if (while_growing) {
      script.on_refusal = free;
    } else {
      script.on_wait = [&] {
        free();
        return false;
      };
    }
    CHECK(pool.allocate(kMiB, script));
    CHECK(script.waited == (while_growing ? 0 : 1));
  }
}

TEST_CASE("an unusable slab is returned before the next thread grows") {
  for (int round = 0; round < 50; ++round) {
    Script script(4 * kMiB);
    SharedPool pool;
    Gate second_missed;
    std::atomic<int> outstanding = 0, asked_too_early = 0;
    REQUIRE(pool.add_slab({0x7f0000000000, kMiB, 0}) == AddSlabOutcome::kAdded);  // at the first slab's address
    script.before_grow = [&] {
      if (outstanding != 0) ++asked_too_early;
      outstanding = script.asked == 1 ? 1 : 0;
    };
    script.on_collect = [&] {
      if (script.collected == 2) second_missed.open();
      return false;
    };
    script.on_shrink = [&] {
      second_missed.pass();
      for (int turn = 0; turn < 1000 && script.asked == 1; ++turn) std::this_thread::yield();  // time for a wrong retry
      outstanding = 0;
    };
    {
      std::vector<std::jthread> threads;
      for (int thread = 0; thread < 2; ++thread) threads.emplace_back([&] { (void)pool.allocate(2 * kMiB, script); });
    }
    REQUIRE(asked_too_early == 0);
    REQUIRE(pool.check_invariants() == "");
  }
}
