// Destroyed pools of the driver's: what they held stays charged until the device is through with it.
#include <atomic>
#include <thread>

#include "unit/policy/stream_books.h"

using namespace ration;
using namespace ration::test;
using policy::StreamPools;

TEST_CASE("a destroyed pool stays charged while a block lives in it, and then until its frees were waited for") {
  StreamBooks books;
  books.allocate(kPool, kMiB);
  books.allocate(kPool, kMiB);
  const StreamPools::PoolRef pool = books.pools.known(kPool);
  books.destroy(kPool);
  CHECK(books.charged() == 32 * kMiB);
  books.pools.block_ended(*pool);
  CHECK(books.pools.has_orphans(0) == false);
  books.pools.block_ended(*pool);
  CHECK(books.pools.has_orphans(0));
  CHECK(books.pools.idle(0) == 32 * kMiB);
  CHECK(books.charged() == 32 * kMiB);
  const std::uint64_t orphaned = books.pools.orphaned(0);
  books.pools.release_orphans(kApi, 0, orphaned);
  CHECK(books.charged() == 0);
  CHECK(books.reported() == 0);
  books.pools.release_orphans(kApi, 0, orphaned);  // another thread that had waited for the same
  CHECK(books.charged() == 0);
  CHECK(books.pools.has_orphans(0) == false);
}

TEST_CASE("only the orphans that were there before a wait are given back after it") {
  StreamBooks books;
  books.allocate(kPool, kMiB);
  books.free(kPool, books.last);
  books.destroy(kPool);
  const std::uint64_t before = books.pools.orphaned(0);
  books.allocate(kOther, 40 * kMiB);
  books.free(kOther, books.last);
  books.destroy(kOther);
  books.pools.release_orphans(kApi, 0, before);
  CHECK(books.charged() == 64 * kMiB);
  CHECK(books.pools.has_orphans(0));
  books.pools.release_orphans(kApi, 0, books.pools.orphaned(0));
  CHECK(books.charged() == 0);
}

TEST_CASE("a pool that the driver refuses to destroy is unchanged") {
  StreamBooks books;
  books.allocate(kPool, kMiB);
  books.destroy(kPool, false);
  CHECK(books.pools.known(kPool) != nullptr);
  books.free(kPool, books.last);
  CHECK(books.pools.has_orphans(0) == false);
  CHECK(books.pools.trim(kApi, 0));
  CHECK(books.charged() == 0);
}

TEST_CASE("a destroyed pool is not queried, and its handle may mean another one") {
  StreamBooks books;
  books.allocate(kPool, kMiB);
  const StreamPools::PoolRef pool = books.pools.begin_destroy(kPool);
  const int calls = books.driver.calls();
  CHECK(books.pools.reconcile(kApi, *pool) == 0);
  CHECK(books.pools.trim(kApi, 0) == false);
  CHECK(books.driver.calls() == calls);
  books.pools.created(kPool, at(CU_MEM_LOCATION_TYPE_DEVICE, 1));
  books.pools.finish_destroy(pool, true);
  CHECK(books.pools.known(kPool)->device == 1);
  CHECK(books.charged() == 32 * kMiB);
  CHECK(books.pools.begin_destroy(FakeMemPools::handle(9)) == nullptr);
}

TEST_CASE("destroying a pool waits for threads that query it") {
  StreamBooks books;
  books.allocate(kPool, kMiB);
  const StreamPools::PoolRef pool = books.pools.known(kPool);
  std::atomic<bool> begun{false};
  std::thread destroyer;
  books.memory.on_asked = [&] {
    books.memory.on_asked = nullptr;
    destroyer = std::thread([&] {
      books.pools.begin_destroy(kPool);
      begun = true;
    });
    for (int calls = -1; calls != books.driver.calls(); std::this_thread::yield()) {
      calls = books.driver.calls();
      books.pools.reconcile(kApi, *pool);  // asks nothing any more once the pool is about to go
    }
    CHECK(!begun);
  };
  books.pools.reconcile(kApi, *pool);
  destroyer.join();
  CHECK(begun);
}
