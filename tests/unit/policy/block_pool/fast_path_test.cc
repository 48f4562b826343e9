// The short way of a hit: when it is there, what it keeps, and what becomes of that.
#include "catch.h"
#include "policy/block_pool/quarantine.h"
#include "unit/policy/quarantine_fixture.h"

using namespace ration;
using namespace ration::test;
using policy::FastPath;
using policy::Quarantine;

namespace {

// The pool of one context with a fast path, in a fixture's quarantine.
struct Lane {
  explicit Lane(QuarantineFixture &in, std::uint64_t at = 0x900000000)
      : fixture(in),
        context(in.add_context()),
        pool(std::make_unique<policy::ContextPool>(*context,
                                                   policy::FastPaths::Claim(in.fast_paths, context->handle, 0))),
        path(pool->claim.path()) {
    REQUIRE(path != nullptr);
    REQUIRE(pool->blocks.add_slab({at, 16 * kMiB, 2}) == pool::AddSlabOutcome::kAdded);
    REQUIRE(pool->blocks.reserve(16'384));  // a hit needs its host memory beforehand
    open();
  }
  void open() {
    fixture.fast_paths.note_use();
    path->open(*pool, context->handle, [] { return true; });
  }
  std::uint64_t take(std::uint64_t bytes = 512) {
    std::uint64_t address = 0;
    return path->allocate(context->handle, bytes, fixture.journal, address) ? address : 0;
  }
  FastPath::Freed free(std::uint64_t address) {
    int device = -1;
    return path->free(context->handle, address, fixture.journal, UINT64_MAX, device);
  }
  // Frees until one is due, which is looked after as BlockPools does it; how many that took to a seal.
  int frees_until_due(std::uint64_t bytes = 512) {
    for (int frees = 1; frees <= 10'000; ++frees) {
      const FastPath::Freed freed = free(take(bytes));
      REQUIRE(freed != FastPath::Freed::no);
      if (freed == FastPath::Freed::due) {
        const auto seals = fixture.driver.calls("cuCtxRecordEvent");
        fixture.quarantine.collect_due();
        if (fixture.driver.calls("cuCtxRecordEvent") != seals) {
          return frees;
        }
      }
    }
    return 0;
  }

  QuarantineFixture &fixture;
  policy::ContextRef context;
  std::unique_ptr<policy::ContextPool> pool;
  FastPath *path;
};

}  // namespace

TEST_CASE("a path serves the handle that it is open for, until it is closed") {
  QuarantineFixture fixture;
  Lane way(fixture);
  const CUcontext handle = way.context->handle;
  CHECK(fixture.fast_paths.find(handle) == way.path);
  const std::uint64_t block = way.take();
  CHECK(block != 0);
  CHECK(way.pool->blocks.find(block));
  std::uint64_t none = 0;
  CHECK_FALSE(way.path->allocate(fixture.context->handle, 512, fixture.journal, none));
  way.path->close();
  CHECK(fixture.fast_paths.find(handle) == nullptr);
  CHECK(way.take() == 0);
  CHECK(way.free(block) == FastPath::Freed::no);
  way.path->open(*way.pool, handle, [] { return false; });
  CHECK(way.take() == 0);
  way.open();
  CHECK(way.free(block) == FastPath::Freed::due);  // the quarantine has not said yet when
  CHECK(way.pool->blocks.statistics().retired_blocks == 1);
  CHECK(fixture.journal.tally().devices[0].allocs == 1);
  CHECK(fixture.journal.tally().devices[0].frees == 1);
  CHECK(fixture.journal.tally().devices[0].live_bytes == 0);
}

TEST_CASE("a block that is too large to be freed untold is not the path's to free") {
  QuarantineFixture fixture;
  Lane way(fixture);
  const std::uint64_t block = way.take(4096);
  int device = -1;
  CHECK(way.path->free(way.context->handle, block, fixture.journal, 4095, device) == FastPath::Freed::no);
  CHECK(way.pool->blocks.find(block));
  CHECK(fixture.journal.tally().devices[0].frees == 0);
  CHECK(fixture.quarantine.blocks() == 0);
  CHECK(way.path->free(way.context->handle, block, fixture.journal, 4096, device) != FastPath::Freed::no);
  CHECK(fixture.quarantine.blocks() == 1);
}

TEST_CASE("a path whose pool has gone turns away who comes late, also when another pool has it") {
  QuarantineFixture fixture;
  std::optional<Lane> gone(std::in_place, fixture);
  const CUcontext handle = gone->context->handle;
  FastPath *path = gone->path;
  REQUIRE(gone->free(gone->take()) != FastPath::Freed::no);
  gone.reset();
  std::uint64_t none = 0;
  int device = 0;
  CHECK_FALSE(path->allocate(handle, 512, fixture.journal, none));
  CHECK(path->free(handle, 0x900000200, fixture.journal, UINT64_MAX, device) == FastPath::Freed::no);
  CHECK(fixture.quarantine.blocks() == 0);
  policy::ContextPool next(*fixture.context, policy::FastPaths::Claim(fixture.fast_paths, handle, 0));
  REQUIRE(next.claim.path() == path);
  CHECK(fixture.quarantine.blocks() == 0);
  REQUIRE(next.blocks.add_slab({0x900000000, kMiB, 3}) == pool::AddSlabOutcome::kAdded);
  path->open(next, fixture.context->handle, [] { return true; });
  CHECK_FALSE(path->allocate(handle, 512, fixture.journal, none));
  CHECK(path->allocate(fixture.context->handle, 512, fixture.journal, none));
  CHECK(path->free(handle, none, fixture.journal, UINT64_MAX, device) == FastPath::Freed::no);
}

TEST_CASE("a handle has four fast_paths at most, and who gets none does without") {
  QuarantineFixture fixture;
  const CUcontext handle = fixture.context->handle;
  std::vector<policy::FastPaths::Claim> claims;
  for (int i = 0; i < 4; ++i) {
    claims.emplace_back(fixture.fast_paths, handle, 0);
    CHECK(claims.back().path() != nullptr);
  }
  CHECK(policy::FastPaths::Claim(fixture.fast_paths, handle, 0).path() == nullptr);
  claims.pop_back();
  CHECK(policy::FastPaths::Claim(fixture.fast_paths, handle, 0).path() != nullptr);
}

TEST_CASE("what does not start a live block of its pool, or has no room there, is not the path's business") {
  QuarantineFixture fixture;
  Lane way(fixture);
  const std::uint64_t block = way.take(1024);
  CHECK(way.free(0) == FastPath::Freed::no);
  CHECK(way.free(block + 512) == FastPath::Freed::no);
  CHECK(way.free(fixture.take()) == FastPath::Freed::no);
  CHECK(way.free(block) != FastPath::Freed::no);
  CHECK(way.free(block) == FastPath::Freed::no);
  CHECK(way.take(17 * kMiB) == 0);
  CHECK(fixture.journal.tally().devices[0].allocs == 1);
  CHECK(fixture.journal.tally().devices[0].frees == 1);
}

TEST_CASE("what is freed on the short way counts as quarantined at once") {
  QuarantineFixture fixture;
  Lane way(fixture);
  fixture.driver.timeline.submit(way.context->handle);
  CHECK(way.frees_until_due() == 1024);
  way.free(way.take(1024));
  fixture.free_one();
  CHECK(fixture.quarantine.blocks() == 1026);
  way.free(way.take());
  CHECK(fixture.quarantine.bytes() == 1024 * 512 + 1024 + 512 + 512);
  way.free(way.take());
  CHECK(fixture.quarantine.retired() == 1028);
  way.free(way.take());
  fixture.driver.timeline.finish(way.context->handle);
  CHECK(fixture.collect().blocks == 1029);
  CHECK(fixture.retired() == 0);
  CHECK(way.pool->blocks.statistics().retired_blocks == 0);
}

TEST_CASE("on the short way too a seal is due after 1,024 frees or an eighth of the bytes") {
  QuarantineFixture fixture;
  Lane way(fixture);
  CHECK(way.frees_until_due() == 1024);
  fixture.collect();
  CHECK(way.frees_until_due() == 1024);
  fixture.collect();
  CHECK(way.frees_until_due(kMiB) == QuarantineFixture::kBytes / kMiB / 8);
  fixture.collect();
  fixture.quarantine.set_sizes(QuarantineFixture::kBytes, 4 * kMiB);
  fixture.free_one();
  CHECK(way.frees_until_due() == 1023);
}

TEST_CASE("on the short way too epochs grow where the program had to wait, and a seal that failed is put off") {
  QuarantineFixture fixture;
  Lane way(fixture);
  for (const int frees : {1024, 2048, 4096}) {
    fixture.driver.timeline.submit(fixture.context->handle);
    CHECK(way.frees_until_due() == frees);
    CHECK(fixture.quarantine.wait().waited);
  }
  fixture.driver.fails["cuCtxRecordEvent"] = CUDA_ERROR_LAUNCH_FAILED;
  CHECK(way.frees_until_due() == 4096);
  CHECK(fixture.collect().error == CUDA_ERROR_LAUNCH_FAILED);
  CHECK(way.frees_until_due() == 1024);
}

TEST_CASE("a seal speaks for what was freed on the short way before it, and for nothing after") {
  QuarantineFixture fixture;
  Lane way(fixture);
  fixture.driver.timeline.submit(way.context->handle);
  way.free(way.take());
  CHECK(fixture.collect().blocks == 0);
  CHECK(fixture.driver.calls("cuCtxRecordEvent") == 2);
  fixture.driver.timeline.submit(way.context->handle);
  way.free(way.take());
  fixture.driver.timeline.finish(way.context->handle);
  fixture.driver.timeline.submit(way.context->handle);
  CHECK(fixture.quarantine.collect(Quarantine::Sealing::worthwhile).blocks == 1);
  CHECK(fixture.quarantine.blocks() == 1);
  CHECK(way.pool->blocks.statistics().retired_blocks == 1);
}

TEST_CASE("a pool that goes takes along what its path keeps, and what others keep stays") {
  QuarantineFixture fixture;
  Lane way(fixture);
  Lane other(fixture, 0xa00000000);
  for (const bool taken_in : {true, false}) {
    for (Lane *each : {&way, &other}) {
      each->free(each->take());
    }
    if (taken_in) {
      (void)fixture.quarantine.blocks();  // gathers
    }
  }
  way.path->close();
  fixture.quarantine.forget(*way.pool);
  CHECK(way.pool->blocks.statistics().retired_blocks == 0);
  CHECK(fixture.quarantine.blocks() == 2);
  CHECK(fixture.collect().blocks == 2);
}

TEST_CASE("a path that is full, because the host has no memory to take its blocks in, keeps all of them") {
  QuarantineFixture fixture;
  Lane way(fixture);
  REQUIRE(way.pool->blocks.reserve(2 * FastPath::kMostFreed));
  std::uint64_t block = 0;
  allocations_left = 0;
  for (int frees = 0; frees < static_cast<int>(FastPath::kMostFreed); ++frees) {
    block = way.take();
    if (way.free(block) == FastPath::Freed::due) {
      (void)fixture.quarantine.blocks();  // gathers
    }
  }
  block = way.take();
  const FastPath::Freed freed = way.free(block);
  std::uint64_t bytes = 0;
  Quarantine::PendingRecord ticket;
  bool due = false;
  const Quarantine::Retired retired = fixture.quarantine.retire(*way.pool, block, bytes, ticket, due);
  allocations_left = -1;
  CHECK(freed == FastPath::Freed::no);
  CHECK(retired == Quarantine::Retired::no_host_memory);
  CHECK(way.pool->blocks.find(block));
  CHECK(fixture.quarantine.blocks() == FastPath::kMostFreed);
  CHECK(fixture.collect().blocks == FastPath::kMostFreed);
}

TEST_CASE("no free of a pool that shares a block is a hit, its allocations are") {
  QuarantineFixture fixture;
  Lane way(fixture);
  const std::uint64_t address = way.take();
  way.pool->shared.fetch_add(1);
  CHECK(way.free(address) == FastPath::Freed::no);
  CHECK(way.take() != 0);
  way.pool->shared.fetch_sub(1);
  CHECK(way.free(address) != FastPath::Freed::no);
}
