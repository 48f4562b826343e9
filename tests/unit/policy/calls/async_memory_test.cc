// Blocks of mode async while other threads have some of the limit reserved, or are giving blocks back.
#include <atomic>
#include <functional>
#include <thread>

#include "catch.h"
#include "unit/policy/fake_call.h"
#include "unit/policy/fake_mem_pools.h"
#include "unit/policy/program.h"
#include "unit/policy/yield_often.h"

using namespace ration;
using namespace ration::test;
using driver::real;

namespace {

// The driver has one pool, and its streams are idle. A test at a time.
FakeMemPools *memory_of_test = nullptr;
std::function<void()> on_synchronise;  // inside cuStreamSynchronize

struct InModeAsync {
  explicit InModeAsync(std::uint64_t limit) : program(limit_of(limit), "", options()) {
    memory_of_test = &memory;
    program.pooled = true;
    fill(
        real.cuMemPoolCreate, +[](CUmemoryPool *pool, const CUmemPoolProps *) {
          return call("cuMemPoolCreate", [&] { return answer(pool, memory_of_test->current); });
        });
    fill(
        real.cuMemPoolSetAttribute, +[](CUmemoryPool, CUmemPool_attribute, void *) {
          return call("cuMemPoolSetAttribute", [] { return CUDA_SUCCESS; });
        });
    fill(
        real.cuMemAllocFromPoolAsync, +[](CUdeviceptr *address, std::size_t bytes, CUmemoryPool pool, CUstream) {
          return memory_of_test->allocate(address, bytes, pool);
        });
    fill(
        real.cuStreamCreate, +[](CUstream *stream, unsigned) {
          return call("cuStreamCreate", [&] { return answer(stream, reinterpret_cast<CUstream>(0x5000)); });
        });
    fill(
        real.cuStreamSynchronize, +[](CUstream) {
          return call("cuStreamSynchronize", [] {
            if (on_synchronise) {
              on_synchronise();
            }
            return CUDA_SUCCESS;
          });
        });
    context = program.create();
  }
  ~InModeAsync() { on_synchronise = nullptr; }
  InModeAsync(const InModeAsync &) = delete;
  InModeAsync &operator=(const InModeAsync &) = delete;

  static runtime::Options options() {
    runtime::Options options;
    options.async = true;
    return options;
  }

  FakeDriver driver;
  FakeMemPools memory;
  Program program;
  CUcontext context = nullptr;
};

}  // namespace

TEST_CASE("a request waits for a thread that has the rest of the limit reserved, however long that one takes") {
  InModeAsync async(34 * kMiB);
  async.memory.step = 2 * kMiB;  // of 32 that are reserved for the first call
  std::atomic<bool> other_begun{false};
  async.memory.on_alloc = [&] {
    if (!other_begun.exchange(true)) {
      for (int turn = 0; turn < 20; ++turn) {
        yield_often();
      }
    }
  };
  std::thread other([&] {
    FakeDriver::current = async.context;
    CUdeviceptr address = 0;
    async.program.allocate(kMiB, &address);
  });
  while (!other_begun) {
    std::this_thread::yield();
  }
  CUdeviceptr address = kUntouched;
  const CUresult result = async.program.allocate(32 * kMiB, &address);
  other.join();
  CHECK(result == CUDA_SUCCESS);
  CHECK(async.driver.calls("cuMemAllocFromPoolAsync") == 2);
  CHECK(async.driver.calls("cuMemAlloc_v2") == 0);  // beside which the pool could not use all that it has
  CHECK(async.program.charged() == async.memory.held());
}

TEST_CASE("a block that goes back counts as returned once its stream has passed its free") {
  InModeAsync async(1024 * kMiB);
  const CUdeviceptr blocks[] = {async.program.take(kMiB), async.program.take(kMiB), async.program.take(kMiB)};
  async.driver.timeline.submit(async.context);
  for (const CUdeviceptr block : blocks) {
    CHECK(async.program.free(block) == CUDA_SUCCESS);
  }
  policy::AsyncPools &pools = async.program.parts.async_pools;
  REQUIRE(pools.returned(0) == 0);
  std::uint64_t too_early = 0;
  on_synchronise = [&] { too_early += pools.returned(0); };
  async.driver.timeline.finish(async.context);
  pools.collect(0);
  CHECK(pools.returned(0) == 3);
  CHECK(too_early == 0);
  CHECK(async.driver.calls("cuMemFreeAsync") == 3);
}
