// The fast path of a context's pool: when it is open, which frees it keeps, and how the quarantine gathers them.
#include "policy/block_pool/fast_path.h"
#include "catch.h"
#include "unit/policy/quarantine_fixture.h"

using namespace ration;
using namespace ration::test;
using policy::ContextPool;
using policy::Freed;
using policy::KeptFrees;
namespace hit = policy::hit;
using policy::Quarantine;

namespace {

// What the slow path does for the next hits: it obtains the host memory that they need.
void prepare(ContextPool &pool) {
  pool::NoUpstream none;
  if (const pool::AllocateOutcome outcome = pool.blocks.allocate(512, none)) {
    REQUIRE(pool.blocks.free(outcome.block.address));
  }
}

// The pool of one context with a fast path, in a fixture's quarantine.
struct FastPool {
  explicit FastPool(QuarantineFixture &in, std::uint64_t at = 0x900000000)
      : fixture(in), context(in.add_context()), pool(&in.context_pools.acquire(*context)) {
    REQUIRE(pool->has_fast_path());
    REQUIRE(pool->blocks.add_slab({at, 16 * kMiB, 2}) == pool::AddSlabOutcome::kAdded);
    REQUIRE(pool->blocks.reserve(16'384));  // a hit needs its host memory beforehand
    open();
  }
  ~FastPool() { pool->release(); }
  FastPool(const FastPool &) = delete;
  FastPool &operator=(const FastPool &) = delete;

  void open() {
    fixture.context_pools.note_use(false);
    pool->open_to_hits(context->handle, [] { return ContextPool::kAnyUse; });
  }
  std::uint64_t take(std::uint64_t bytes = 512) {
    std::uint64_t address = 0;
    prepare(*pool);
    return hit::allocate(*pool, context->handle, bytes, fixture.journal, address) ? address : 0;
  }
  Freed::Kind free(std::uint64_t address) {
    return hit::free(*pool, context->handle, address, fixture.journal, UINT64_MAX).kind;
  }
  // Frees until the quarantine seals, called as BlockPools does; the number of frees.
  int frees_until_due(std::uint64_t bytes = 512) {
    for (int frees = 1; frees <= 10'000; ++frees) {
      const Freed::Kind freed = free(take(bytes));
      REQUIRE(freed != Freed::no);
      if (freed == Freed::due) {
        const auto seals = fixture.driver.calls("cuCtxRecordEvent");
        fixture.quarantine.collect_freed(false);
        if (fixture.driver.calls("cuCtxRecordEvent") != seals) {
          return frees;
        }
      }
    }
    return 0;
  }

  QuarantineFixture &fixture;
  policy::ContextRef context;
  ContextPool *const pool;
};

}  // namespace

TEST_CASE("a fast path serves the handle that it is open for, until it is closed") {
  QuarantineFixture fixture;
  FastPool fast(fixture);
  const CUcontext handle = fast.context->handle;
  CHECK(fixture.context_pools.find(handle) == fast.pool);
  const std::uint64_t block = fast.take();
  CHECK(block != 0);
  CHECK(fast.pool->blocks.find(block));
  std::uint64_t none = 0;
  CHECK_FALSE(hit::allocate(*fast.pool, fixture.context->handle, 512, fixture.journal, none));
  fast.pool->close_to_hits();
  CHECK(fixture.context_pools.find(handle) == nullptr);
  CHECK(fast.take() == 0);
  CHECK(fast.free(block) == Freed::no);
  fast.pool->open_to_hits(handle, [] { return std::uint64_t{0}; });
  CHECK(fast.take() == 0);
  fast.open();
  CHECK(fast.free(block) == Freed::due);  // the quarantine has not said yet when
  CHECK(fast.pool->blocks.statistics().retired_blocks == 1);
  CHECK(fixture.journal.tally().devices[0].allocs == 1);
  CHECK(fixture.journal.tally().devices[0].frees == 1);
  CHECK(fixture.journal.tally().devices[0].live_bytes == 0);
}

TEST_CASE("a free that is to be recorded is in flight, and in no quarantine, until it is in the log") {
  QuarantineFixture fixture;
  FastPool fast(fixture);
  prepare(*fast.pool);
  events::Alloc taken{};
  REQUIRE(hit::allocate_unrecorded(*fast.pool, fast.context->handle, 512, taken));
  CHECK(taken.size == 512);
  CHECK(taken.slab == 2);
  CHECK(taken.context == fast.context->number);
  CHECK_FALSE(taken.stitched);
  CHECK(fast.pool->in_flight == 1);
  fast.pool->land();
  events::Free freed{taken.address, 0, -1, 0, "cuMemFree_v2"};
  REQUIRE(hit::retire_unrecorded(*fast.pool, fast.context->handle, UINT64_MAX, freed));
  CHECK(freed.size == 512);
  CHECK(freed.device == fast.context->device);
  CHECK(freed.context == fast.context->number);
  CHECK_FALSE(
      hit::retire_unrecorded(*fast.pool, fast.context->handle, UINT64_MAX, freed));  // the second of two racing frees
  CHECK(fast.pool->in_flight == 1);
  CHECK(fixture.quarantine.blocks() == 0);
  fixture.quarantine.collect_freed(true);
  CHECK(fast.pool->blocks.statistics().retired_blocks == 1);
  CHECK(hit::keep(*fast.pool, freed).kind != Freed::no);
  fast.pool->land();
  CHECK(fast.pool->in_flight == 0);
  CHECK(fixture.quarantine.blocks() == 1);
  CHECK(fixture.journal.tally().devices[0].allocs == 0);  // the records count
}

TEST_CASE("no more frees are to be recorded than can be kept") {
  QuarantineFixture fixture;
  FastPool fast(fixture);
  std::vector<events::Free> frees;
  for (std::uint32_t i = 0; i < KeptFrees::kMost; ++i) {
    frees.push_back({fast.take(), 0, -1, 0, "cuMemFree_v2"});
    REQUIRE(hit::retire_unrecorded(*fast.pool, fast.context->handle, UINT64_MAX, frees.back()));
  }
  events::Free more{fast.take(), 0, -1, 0, "cuMemFree_v2"};
  CHECK_FALSE(hit::retire_unrecorded(*fast.pool, fast.context->handle, UINT64_MAX, more));
  for (const events::Free &each : frees) {
    CHECK(hit::keep(*fast.pool, each).kind != Freed::no);
    fast.pool->land();
  }
  CHECK(fixture.quarantine.blocks() == KeptFrees::kMost);
}

TEST_CASE("the fast path does not free a block whose size must be published") {
  QuarantineFixture fixture;
  FastPool fast(fixture);
  const std::uint64_t block = fast.take(4096);
  CHECK(hit::free(*fast.pool, fast.context->handle, block, fixture.journal, 4095).kind == Freed::no);
  CHECK(fast.pool->blocks.find(block));
  CHECK(fixture.journal.tally().devices[0].frees == 0);
  CHECK(fixture.quarantine.blocks() == 0);
  CHECK(hit::free(*fast.pool, fast.context->handle, block, fixture.journal, 4096).kind != Freed::no);
  CHECK(fixture.quarantine.blocks() == 1);
}

TEST_CASE("a stale handle finds a recycled pool closed, also when another context has it") {
  QuarantineFixture fixture;
  std::optional<FastPool> gone(std::in_place, fixture);
  const CUcontext handle = gone->context->handle;
  ContextPool *const pool = gone->pool;
  REQUIRE(gone->free(gone->take()) != Freed::no);
  gone.reset();
  std::uint64_t none = 0;
  CHECK_FALSE(hit::allocate(*pool, handle, 512, fixture.journal, none));
  CHECK(hit::free(*pool, handle, 0x900000200, fixture.journal, UINT64_MAX).kind == Freed::no);
  CHECK(fixture.quarantine.blocks() == 0);
  policy::Context next;
  next.handle = handle;  // so that it gets the same place
  REQUIRE(&fixture.context_pools.acquire(next) == pool);
  CHECK(pool->context == &next);
  CHECK(pool->blocks.statistics().slab_bytes == 0);
  CHECK(fixture.quarantine.blocks() == 0);
  REQUIRE(pool->blocks.add_slab({0x900000000, kMiB, 3}) == pool::AddSlabOutcome::kAdded);
  prepare(*pool);
  pool->open_to_hits(fixture.context->handle, [] { return ContextPool::kAnyUse; });
  CHECK_FALSE(hit::allocate(*pool, handle, 512, fixture.journal, none));
  CHECK(hit::allocate(*pool, fixture.context->handle, 512, fixture.journal, none));
  CHECK(hit::free(*pool, handle, none, fixture.journal, UINT64_MAX).kind == Freed::no);
  pool->release();
}

TEST_CASE("a handle has four places at most, and a pool that gets none has no fast path") {
  QuarantineFixture fixture;
  std::vector<ContextPool *> pools;
  for (int i = 0; i < 5; ++i) {
    pools.push_back(&fixture.context_pools.acquire(*fixture.context));
    CHECK(pools.back()->has_fast_path() == (i < 4));
  }
  pools[3]->release();
  pools[3] = &fixture.context_pools.acquire(*fixture.context);
  CHECK(pools[3]->has_fast_path());
  for (ContextPool *pool : pools) {
    pool->release();
  }
}

TEST_CASE("the fast path leaves alone what starts no live block of its pool or has no room there") {
  QuarantineFixture fixture;
  FastPool fast(fixture);
  const std::uint64_t block = fast.take(1024);
  CHECK(fast.free(0) == Freed::no);
  CHECK(fast.free(block + 512) == Freed::no);
  CHECK(fast.free(fixture.take()) == Freed::no);
  CHECK(fast.free(block) != Freed::no);
  CHECK(fast.free(block) == Freed::no);
  CHECK(fast.take(17 * kMiB) == 0);
  CHECK(fixture.journal.tally().devices[0].allocs == 1);
  CHECK(fixture.journal.tally().devices[0].frees == 1);
}

TEST_CASE("what is freed on the fast path counts as quarantined at once") {
  QuarantineFixture fixture;
  FastPool fast(fixture);
  fixture.driver.timeline.submit(fast.context->handle);
  CHECK(fast.frees_until_due() == 1024);
  fast.free(fast.take(1024));
  fixture.free_one();
  CHECK(fixture.quarantine.blocks() == 1026);
  fast.free(fast.take());
  CHECK(fixture.quarantine.bytes() == 1024 * 512 + 1024 + 512 + 512);
  fast.free(fast.take());
  CHECK(fixture.quarantine.retired() == 1028);
  fast.free(fast.take());
  fixture.driver.timeline.finish(fast.context->handle);
  CHECK(fixture.collect().blocks == 1029);
  CHECK(fixture.retired() == 0);
  CHECK(fast.pool->blocks.statistics().retired_blocks == 0);
}

TEST_CASE("a seal is due after 1,024 frees of the fast path or an eighth of the bytes") {
  QuarantineFixture fixture;
  FastPool fast(fixture);
  CHECK(fast.frees_until_due() == 1024);
  fixture.collect();
  CHECK(fast.frees_until_due() == 1024);
  fixture.collect();
  CHECK(fast.frees_until_due(kMiB) == QuarantineFixture::kBytes / kMiB / 8);
  fixture.collect();
  fixture.quarantine.set_sizes(QuarantineFixture::kBytes, 4 * kMiB, QuarantineFixture::kUnlimited);
  fixture.free_one();
  CHECK(fast.frees_until_due() == 1023);
}

TEST_CASE("epochs of the fast path's frees grow when the program had to wait, and a failed seal is postponed") {
  QuarantineFixture fixture;
  FastPool fast(fixture);
  for (const int frees : {1024, 2048, 4096}) {
    fixture.driver.timeline.submit(fixture.context->handle);
    CHECK(fast.frees_until_due() == frees);
    CHECK(fixture.wait().waited);
  }
  fixture.driver.fails["cuCtxRecordEvent"] = CUDA_ERROR_LAUNCH_FAILED;
  CHECK(fast.frees_until_due() == 4096);
  CHECK(fixture.collect().error == CUDA_ERROR_LAUNCH_FAILED);
  CHECK(fast.frees_until_due() == 1024);
}

TEST_CASE("a seal covers what the fast path freed before it, and nothing after") {
  QuarantineFixture fixture;
  FastPool fast(fixture);
  fixture.driver.timeline.submit(fast.context->handle);
  fast.free(fast.take());
  CHECK(fixture.collect().blocks == 0);
  CHECK(fixture.driver.calls("cuCtxRecordEvent") == 2);
  fixture.driver.timeline.submit(fast.context->handle);
  fast.free(fast.take());
  fixture.driver.timeline.finish(fast.context->handle);
  fixture.driver.timeline.submit(fast.context->handle);
  CHECK(fixture.quarantine.collect(Quarantine::Sealing::worthwhile).blocks == 1);
  CHECK(fixture.quarantine.blocks() == 1);
  CHECK(fast.pool->blocks.statistics().retired_blocks == 1);
}

TEST_CASE("a pool that ends takes along the frees that its fast path keeps, and no others") {
  QuarantineFixture fixture;
  FastPool fast(fixture);
  FastPool other(fixture, 0xa00000000);
  for (const bool taken_in : {true, false}) {
    for (FastPool *each : {&fast, &other}) {
      each->free(each->take());
    }
    if (taken_in) {
      (void)fixture.quarantine.blocks();  // gathers
    }
  }
  fast.pool->close_to_hits();
  fixture.quarantine.forget(*fast.pool);
  CHECK(fast.pool->blocks.statistics().retired_blocks == 0);
  CHECK(fixture.quarantine.blocks() == 2);
  CHECK(fixture.collect().blocks == 2);
}

TEST_CASE("a fast path that is full, because the host has no memory to gather its frees, keeps all of them") {
  QuarantineFixture fixture;
  FastPool fast(fixture);
  REQUIRE(fast.pool->blocks.reserve(2 * KeptFrees::kMost));
  std::uint64_t block = 0;
  allocations_left = 0;
  for (int frees = 0; frees < static_cast<int>(KeptFrees::kMost); ++frees) {
    block = fast.take();
    if (fast.free(block) == Freed::due) {
      (void)fixture.quarantine.blocks();  // gathers
    }
  }
  block = fast.take();
  const Freed::Kind freed = fast.free(block);
  std::uint64_t bytes = 0;
  Quarantine::PendingRecord pending;
  bool due = false;
  const Quarantine::Retired retired = fixture.quarantine.retire(*fast.pool, block, bytes, pending, due);
  allocations_left = -1;
  CHECK(freed == Freed::no);
  CHECK(retired == Quarantine::Retired::no_host_memory);
  CHECK(fast.pool->blocks.find(block));
  CHECK(fixture.quarantine.blocks() == KeptFrees::kMost);
  CHECK(fixture.collect().blocks == KeptFrees::kMost);
}

TEST_CASE("a pool that shares a block serves no frees as hits, only allocations") {
  QuarantineFixture fixture;
  FastPool fast(fixture);
  const std::uint64_t address = fast.take();
  fast.pool->shared.fetch_add(1);
  CHECK(fast.free(address) == Freed::no);
  CHECK(fast.take() != 0);
  fast.pool->shared.fetch_sub(1);
  CHECK(fast.free(address) != Freed::no);
}
