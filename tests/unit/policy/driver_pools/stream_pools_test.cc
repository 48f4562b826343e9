// What the driver's own pools are charged: never less than they hold, whenever it is queried.
#include <atomic>
#include <optional>
#include <thread>

#include "unit/policy/stream_books.h"

using namespace ration;
using namespace ration::test;
using policy::StreamPools;

TEST_CASE("a call is bounded by the largest growth step until the pool was seen to grow") {
  StreamBooks books;
  const StreamPools::PoolRef pool = books.pools.find(kPool, 0);
  CHECK(books.pools.upper_bound(*pool, 1) == 32 * kMiB);
  CHECK(books.pools.upper_bound(*pool, 32 * kMiB) == 32 * kMiB);
  CHECK(books.pools.upper_bound(*pool, 32 * kMiB + 1) == 64 * kMiB);
  CHECK(books.pools.upper_bound(*pool, UINT64_MAX - 1) == UINT64_MAX);
}

TEST_CASE("the step is what divides all growth that was seen, and no bound is less than the largest") {
  StreamBooks books;
  books.memory.step = 6 * kMiB;
  books.allocate(kPool, 1);
  const StreamPools::PoolRef pool = books.pools.known(kPool);
  CHECK(books.pools.upper_bound(*pool, 1) == 6 * kMiB);
  CHECK(books.pools.upper_bound(*pool, 7 * kMiB) == 8 * kMiB);  // 2 divides 32 and 6
  books.memory.step = 512 * 3;
  books.allocate(kPool, 512 * 3 * 5000);  // by less than that: the rest was in the pool
  CHECK(books.pools.upper_bound(*pool, 1) == 6 * kMiB);
  CHECK(books.pools.upper_bound(*pool, 6 * kMiB + 1) == 6 * kMiB + 512);
  books.memory.pools[kPool].reserved += 7;  // of a driver that counts bytes
  books.pools.reconcile(kApi, *pool);
  CHECK(books.pools.upper_bound(*pool, 6 * kMiB + 1) == 6 * kMiB + 512);
}

TEST_CASE("odd sizes that a trim leaves do not make a bound less than what the driver takes at once") {
  const std::uint64_t odd = GENERATE(2 * kMiB, 34 * kMiB, 33 * kMiB + 512);
  StreamBooks books;
  books.allocate(kPool, 96 * kMiB);
  books.free(kPool, books.last);
  const StreamPools::PoolRef pool = books.pools.known(kPool);
  books.memory.pools[kPool].reserved = odd;
  books.pools.reconcile(kApi, *pool);
  books.allocate(kPool, 96 * kMiB);
  for (const std::uint64_t bytes : {std::uint64_t{1}, 32 * kMiB, 33 * kMiB, 100 * kMiB}) {
    CAPTURE(odd, bytes);
    const std::uint64_t taken = (bytes + 32 * kMiB - 1) / (32 * kMiB) * (32 * kMiB);
    CHECK(books.pools.upper_bound(*pool, bytes) >= taken);
  }
}

TEST_CASE("after a call the charge is what the pool says it reserves, and the log has that figure") {
  StreamBooks books;
  books.memory.step = 2 * kMiB;
  books.allocate(kPool, kMiB);
  CHECK(books.charged() == 2 * kMiB);
  CHECK(books.reported() == 2 * kMiB);
  books.allocate(kPool, kMiB);  // there was room in it
  CHECK(books.charged() == 2 * kMiB);
  books.free(kPool, books.last);
  CHECK(books.charged() == 2 * kMiB);  // kept by the pool
  CHECK(books.pools.trim(kApi, 0) == false);
  CHECK(books.charged() == 2 * kMiB);
}

TEST_CASE("a call that the driver refuses leaves nothing charged") {
  StreamBooks books;
  books.driver.fails["cuMemAllocFromPoolAsync"] = CUDA_ERROR_OUT_OF_MEMORY;
  books.allocate(kPool, kMiB);
  CHECK(books.charged() == 0);
  CHECK(books.reported() == 0);
  books.driver.fails.clear();
  books.allocate(kPool, kMiB);
  CHECK(books.charged() == books.memory.held());
}

TEST_CASE("while a call is in flight its bound stays charged, whatever the pool says") {
  StreamBooks books;
  books.memory.step = 2 * kMiB;
  const StreamPools::PoolRef pool = books.pools.find(kPool, 0);
  REQUIRE(books.account().reserve(32 * kMiB) == ledger::ReserveOutcome::granted);
  const StreamPools::Call call = books.pools.begin(*pool, 32 * kMiB);
  books.allocate(kPool, kMiB);
  CHECK(books.charged() == 34 * kMiB);
  CHECK(books.pools.finish(*pool, call, true) == 0);
  books.pools.reconcile(kApi, *pool);
  CHECK(books.charged() == 2 * kMiB);
}

TEST_CASE("what another call took during a query is not released by the older answer") {
  StreamBooks books;
  books.memory.step = 2 * kMiB;
  const StreamPools::PoolRef pool = books.pools.find(kPool, 0);
  books.memory.on_asked = [&] {
    books.memory.on_asked = nullptr;
    const std::uint64_t bound = books.pools.upper_bound(*pool, 32 * kMiB);
    REQUIRE(books.account().reserve(bound) == ledger::ReserveOutcome::granted);
    const StreamPools::Call call = books.pools.begin(*pool, bound);
    REQUIRE(books.memory.allocate(&books.last, 32 * kMiB, kPool) == CUDA_SUCCESS);
    books.pools.finish(*pool, call, true);
  };
  books.pools.reconcile(kApi, *pool);  // reported that it holds nothing
  CHECK(books.charged() == 32 * kMiB);
  CHECK(books.charged() >= books.memory.held());
}

TEST_CASE("an answer older than another's is asked for again before the pool is said to hold more than its charge") {
  StreamBooks books;
  books.allocate(kPool, 96 * kMiB);
  books.free(kPool, books.last);
  const StreamPools::PoolRef pool = books.pools.known(kPool);
  books.memory.on_asked = [&] {
    books.memory.on_asked = nullptr;
    books.pools.trim(kApi, 0);
  };
  CHECK(books.pools.reconcile(kApi, *pool) == 0);
  CHECK(books.charged() == 0);
}

TEST_CASE("while a call relies on the cap of its pool, the charge does not fall below that cap") {
  const bool other_succeeds = GENERATE(true, false);
  const bool succeeds = GENERATE(true, false);
  CAPTURE(other_succeeds, succeeds);
  StreamBooks books;
  CUmemPoolProps capped = at(CU_MEM_LOCATION_TYPE_DEVICE, 0);
  capped.maxSize = 96 * kMiB;
  books.pools.created(kPool, capped);
  const StreamPools::PoolRef pool = books.pools.known(kPool);
  books.account().set_limit(95 * kMiB);
  CHECK_FALSE(books.pools.reserve_to_cap(*pool));
  REQUIRE(books.account().reserve(64 * kMiB) == ledger::ReserveOutcome::granted);
  const StreamPools::Call other = books.pools.begin(*pool, 64 * kMiB);
  CHECK_FALSE(books.pools.reserve_to_cap(*pool));
  CHECK(books.charged() == 64 * kMiB);
  books.account().set_limit(96 * kMiB);
  const std::optional<StreamPools::Call> relying = books.pools.reserve_to_cap(*pool);
  REQUIRE(relying);
  CHECK(books.charged() == 96 * kMiB);

  CHECK(books.pools.finish(*pool, other, other_succeeds) == 0);
  books.pools.reconcile(kApi, *pool);
  CHECK(books.charged() == 96 * kMiB);

  if (succeeds) {
    REQUIRE(books.memory.allocate(&books.last, 96 * kMiB, kPool) == CUDA_SUCCESS);
  }
  books.pools.finish_and_release(*pool, *relying, succeeds);
  CHECK(books.pools.reconcile(kApi, *pool) == 0);
  CHECK(books.charged() == books.memory.held());
}

TEST_CASE("a call that relied on the cap counts with that cap against an answer from before its end") {
  StreamBooks books;
  CUmemPoolProps capped = at(CU_MEM_LOCATION_TYPE_DEVICE, 0);
  capped.maxSize = 96 * kMiB;
  books.pools.created(kPool, capped);
  const StreamPools::PoolRef pool = books.pools.known(kPool);
  REQUIRE(books.account().reserve(64 * kMiB) == ledger::ReserveOutcome::granted);
  const StreamPools::Call other = books.pools.begin(*pool, 64 * kMiB);
  books.account().set_limit(96 * kMiB);
  const std::optional<StreamPools::Call> relying = books.pools.reserve_to_cap(*pool);
  REQUIRE(relying);
  books.pools.finish(*pool, other, true);  // from what the pool held
  books.memory.on_asked = [&] {
    books.memory.on_asked = nullptr;
    REQUIRE(books.memory.allocate(&books.last, 96 * kMiB, kPool) == CUDA_SUCCESS);
    books.pools.finish_and_release(*pool, *relying, true);
  };
  books.pools.reconcile(kApi, *pool);
  CHECK(books.charged() == 96 * kMiB);
}

TEST_CASE("what one thread reserves for a pool is at no time other memory to another") {
  StreamBooks books;
  CUmemPoolProps capped = at(CU_MEM_LOCATION_TYPE_DEVICE, 0);
  capped.maxSize = 96 * kMiB;
  books.account().set_limit(96 * kMiB);
  books.pools.created(kPool, capped);
  const StreamPools::PoolRef pool = books.pools.known(kPool);
  std::atomic<bool> over{false};
  std::thread reserving([&] {
    while (!over) {
      if (const auto call = books.pools.reserve(*pool, 32 * kMiB, ledger::Effort::kImmediate)) {
        books.pools.finish_and_release(*pool, *call, false);
      }
      if (const auto call = books.pools.reserve_to_cap(*pool)) {
        books.pools.finish_and_release(*pool, *call, false);
      }
    }
  });
  int others = 0;
  for (int look = 0; look < 200'000; ++look) {
    others += books.pools.can_reach_cap(*pool) ? 0 : 1;
  }
  over = true;
  reserving.join();
  CHECK(others == 0);
  REQUIRE(books.account().reserve(kMiB) == ledger::ReserveOutcome::granted);
  CHECK_FALSE(books.pools.can_reach_cap(*pool));
  CHECK_FALSE(books.pools.reserve_to_cap(*pool));
  CHECK(books.charged() == kMiB);
}

TEST_CASE("a pool that took more than its bound says how much is missing") {
  StreamBooks books;
  books.memory.step = 100 * kMiB;
  books.allocate(kPool, kMiB);
  CHECK(books.charged() == 32 * kMiB);
  CHECK(books.missing == 68 * kMiB);
  REQUIRE(books.account().reserve(books.missing) == ledger::ReserveOutcome::granted);
  books.pools.add(kApi, *books.pools.known(kPool), books.missing);
  CHECK(books.pools.reconcile(kApi, *books.pools.known(kPool)) == 0);
  CHECK(books.charged() == 100 * kMiB);
  CHECK(books.reported() == 100 * kMiB);
}

TEST_CASE("what a pool held before it was first seen is charged once, with its first block") {
  StreamBooks books;
  books.memory.pools[kPool] = {0, 96 * kMiB};
  CHECK(books.pools.known(kPool) == nullptr);
  books.allocate(kPool, kMiB);
  CHECK(books.charged() == 96 * kMiB);
  books.pools.find(kPool, 0);
  CHECK(books.charged() == 96 * kMiB);
}

TEST_CASE("trimming asks each pool of the device, and none of another device") {
  StreamBooks books;
  books.allocate(kPool, kMiB);
  books.free(kPool, books.last);
  books.allocate(kOther, kMiB, 1);
  books.free(kOther, books.last);
  CHECK(books.pools.trim(kApi, 0));
  CHECK(books.charged(0) == 0);
  CHECK(books.charged(1) == 32 * kMiB);
  CHECK(books.memory.pools[kOther].trims == 0);
  CHECK(books.pools.trim(kApi, 0) == false);  // there is nothing left
}

TEST_CASE("what a pool reserves and does not use is idle, as far as the driver says") {
  StreamBooks books;
  CHECK(books.pools.idle(0) == 0);
  books.allocate(kPool, 32 * kMiB);
  CHECK(books.pools.idle(0) == 0);
  books.free(kPool, books.last);
  CHECK(books.pools.idle(0) == 0);  // not in stream order: no wait lets more of it go
  books.pools.freed_in_order(0, kMiB);
  CHECK(books.pools.idle(0) == 32 * kMiB);
  CHECK(books.pools.idle(1) == 0);
  const std::uint64_t mark = books.pools.order_mark(0);
  books.pools.note_passed(0, mark);
  CHECK(books.pools.idle(0) == 0);
  books.pools.freed_in_order(0, kMiB);
  books.pools.note_passed(0, mark);  // a wait that began before
  CHECK(books.pools.idle(0) == 32 * kMiB);
  books.driver.fails["cuMemPoolGetAttribute"] = CUDA_ERROR_INVALID_VALUE;
  CHECK(books.pools.idle(0) == 0);
}

TEST_CASE("a driver that stops saying what a pool reserves leaves the charge as it was") {
  StreamBooks books;
  books.allocate(kPool, kMiB);
  books.driver.fails["cuMemPoolGetAttribute"] = CUDA_ERROR_INVALID_VALUE;
  CHECK(books.pools.reconcile(kApi, *books.pools.known(kPool)) == 0);
  books.allocate(kPool, kMiB);
  CHECK(books.charged() == 64 * kMiB);  // both bounds
}

TEST_CASE("a pool of host memory is not charged and not queried") {
  StreamBooks books;
  for (const CUmemLocationType where :
       {CU_MEM_LOCATION_TYPE_HOST, CU_MEM_LOCATION_TYPE_HOST_NUMA, CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT}) {
    books.pools.created(kPool, at(where, 0));
    CHECK(books.pools.find(kPool, 0)->device == -1);
  }
  const int calls = books.driver.calls();
  CHECK(books.pools.reconcile(kApi, *books.pools.find(kPool, 0)) == 0);
  CHECK(books.driver.calls() == calls);
}

TEST_CASE("a pool belongs to its location's device, and one without a location to the first that allocates from it") {
  StreamBooks books;
  books.pools.created(kPool, at(CU_MEM_LOCATION_TYPE_DEVICE, 1));
  CHECK(books.pools.find(kPool, 0)->device == 1);
  books.pools.created(kOther, at(CU_MEM_LOCATION_TYPE_DEVICE, ledger::kMaxDevices));
  CHECK(books.pools.known(kOther) == nullptr);
  books.pools.created(kOther, at(CU_MEM_LOCATION_TYPE_INVALID, 0));
  CHECK(books.pools.known(kOther) == nullptr);
  CHECK(books.pools.find(kOther, 1)->device == 1);
}

TEST_CASE("the last step of a pool to its cap may be smaller, and says nothing of the next one") {
  StreamBooks books;
  CUmemPoolProps capped = at(CU_MEM_LOCATION_TYPE_DEVICE, 0);
  capped.maxSize = 100 * kMiB;
  books.pools.created(kPool, capped);
  books.memory.step = 100 * kMiB;  // three steps and the rest
  books.allocate(kPool, 100 * kMiB);
  books.free(kPool, books.last);
  CHECK(books.pools.upper_bound(*books.pools.known(kPool), kMiB) == 32 * kMiB);
  books.pools.created(kOther, at(CU_MEM_LOCATION_TYPE_DEVICE, 0));
  books.memory.step = 2 * kMiB;
  books.allocate(kOther, kMiB);
  CHECK(books.pools.upper_bound(*books.pools.known(kOther), kMiB) == 2 * kMiB);
}
