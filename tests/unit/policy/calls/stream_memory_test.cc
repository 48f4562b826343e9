// Stream-ordered memory through the policy: what is refused, waited for and rolled back.
#include <atomic>
#include <thread>

#include "base/wait.h"
#include "catch.h"
#include "unit/events/log_lines.h"
#include "unit/events/scratch_folder.h"
#include "unit/policy/fake_mem_pools.h"
#include "unit/policy/program.h"

using namespace ration;
using namespace ration::test;

namespace {

struct Streamed {
  explicit Streamed(std::uint64_t limit, std::string log = "") : program(limit_of(limit), std::move(log)) {
    program.create();
  }
  CUdeviceptr take(std::uint64_t bytes, CUmemoryPool pool = nullptr) {
    CUdeviceptr address = kUntouched;
    const CUresult result = program.parts.stream_memory.allocate(
        {"cuMemAllocAsync", bytes, bytes, nullptr}, pool, CU_STREAM_LEGACY,
        [&](policy::Obtained &got) {
          got.bytes = bytes;
          return memory.allocate(&got.address, bytes, pool != nullptr ? pool : memory.current);
        },
        &address);
    last.store(result);
    return address;
  }
  CUresult give_back(CUdeviceptr address) {
    return program.parts.stream_memory.free("cuMemFreeAsync", address, CU_STREAM_LEGACY,
                                            [&] { return memory.free(address); });
  }
  CUresult destroy(CUmemoryPool pool, CUresult code = CUDA_SUCCESS) {
    return program.parts.stream_memory.destroy_pool(pool, [&] {
      if (code == CUDA_SUCCESS) {
        memory.pools.erase(pool);
      }
      return code;
    });
  }
  std::uint64_t denied() { return program.denied(events::Reason::limit); }

  FakeDriver driver;
  FakeMemPools memory;
  Program program;
  std::atomic<CUresult> last{CUDA_SUCCESS};
};

}  // namespace

TEST_CASE("a stream-ordered call is refused before it is made, and writes nothing") {
  Streamed streamed(64 * kMiB);
  CHECK(streamed.take(40 * kMiB) != kUntouched);
  CHECK(streamed.program.charged() == 64 * kMiB);
  CHECK(streamed.take(32 * kMiB) == kUntouched);
  CHECK(streamed.last == CUDA_ERROR_OUT_OF_MEMORY);
  CHECK(streamed.driver.calls("cuMemAllocFromPoolAsync") == 1);
  CHECK(streamed.denied() == 1);
  CHECK(streamed.program.charged() == streamed.memory.held());
}

TEST_CASE("the driver's refusal goes back with its code, and nothing is charged for it") {
  Streamed streamed(64 * kMiB);
  streamed.driver.fails["cuMemAllocFromPoolAsync"] = CUDA_ERROR_INVALID_VALUE;
  CHECK(streamed.take(kMiB) == kUntouched);
  CHECK(streamed.last == CUDA_ERROR_INVALID_VALUE);
  CHECK(streamed.program.charged() == 0);
  CHECK(streamed.program.tally().failed_allocs == 1);
}

TEST_CASE("a pool that grows past the limit has to give the block back") {
  Streamed streamed(64 * kMiB);
  streamed.memory.step = 128 * kMiB;
  CHECK(streamed.take(kMiB) == kUntouched);
  CHECK(streamed.last == CUDA_ERROR_OUT_OF_MEMORY);
  CHECK(streamed.driver.calls("cuMemFreeAsync") == 1);
  CHECK(streamed.memory.held() == 0);
  CHECK(streamed.program.charged() == 0);
  CHECK(streamed.denied() == 1);
}

TEST_CASE("what a pool keeps is trimmed before anything is refused, through whatever API") {
  Streamed streamed(64 * kMiB);
  CHECK(streamed.give_back(streamed.take(64 * kMiB)) == CUDA_SUCCESS);
  CHECK(streamed.program.charged() == 64 * kMiB);
  CHECK(streamed.program.take(64 * kMiB) != kUntouched);
  CHECK(streamed.memory.held() == 0);
  CHECK(streamed.denied() == 0);
}

TEST_CASE("what the device is still busy with is waited for before anything is refused") {
  Streamed streamed(64 * kMiB);
  streamed.memory.kept_in_use = 64 * kMiB;
  streamed.driver.streams_wait = true;
  CHECK(streamed.give_back(streamed.take(64 * kMiB)) == CUDA_SUCCESS);
  streamed.driver.during_wait = [&] { streamed.memory.kept_in_use = 0; };
  CHECK(streamed.program.take(64 * kMiB) != kUntouched);
  CHECK(streamed.driver.calls("cuEventSynchronize") == 1);
  CHECK(streamed.denied() == 0);
}

TEST_CASE("what a destroyed pool held is waited for before anything is refused") {
  Streamed streamed(64 * kMiB);
  const CUmemoryPool pool = FakeMemPools::handle(7);
  const CUcontext context = FakeDriver::current;
  CHECK(streamed.give_back(streamed.take(64 * kMiB, pool)) == CUDA_SUCCESS);
  streamed.driver.timeline.submit(context);
  CHECK(streamed.destroy(pool) == CUDA_SUCCESS);
  CHECK(streamed.program.charged() == 64 * kMiB);
  int queries = 0;
  streamed.driver.on_query = [&] {
    if (++queries == 4) {
      streamed.driver.timeline.finish(context);
    }
  };
  CHECK(streamed.program.take(64 * kMiB) != kUntouched);
  CHECK(queries >= 4);
  CHECK(streamed.program.charged() == 64 * kMiB);
}

TEST_CASE("what a destroyed pool held is given out when its frees have run, whatever was submitted after them") {
  Streamed streamed(64 * kMiB);
  const CUmemoryPool pool = FakeMemPools::handle(7);
  const CUcontext context = FakeDriver::current;
  CUdeviceptr address = 0;
  SECTION("its last block ends before it") {
    CHECK(streamed.give_back(streamed.take(64 * kMiB, pool)) == CUDA_SUCCESS);
    streamed.driver.timeline.submit(context);
    CHECK(streamed.destroy(pool) == CUDA_SUCCESS);
  }
  SECTION("its last block ends after it") {
    address = streamed.take(64 * kMiB, pool);
    CHECK(streamed.destroy(pool) == CUDA_SUCCESS);
    streamed.driver.timeline.submit(context);
    CHECK(streamed.give_back(address) == CUDA_SUCCESS);
  }
  CHECK(streamed.program.charged() == 64 * kMiB);
  streamed.driver.timeline.finish(context);
  streamed.driver.timeline.submit(context);
  CHECK(streamed.program.take(64 * kMiB) != kUntouched);
  CHECK(streamed.driver.calls("cuEventSynchronize") == 0);
  CHECK(streamed.denied() == 0);
}

TEST_CASE("few fences are kept for destroyed pools, and the newest answers for those that are not") {
  Streamed streamed(10240 * kMiB);
  const CUcontext context = FakeDriver::current;
  streamed.driver.timeline.submit(context);
  for (int i = 1; i <= 100; ++i) {
    const CUmemoryPool pool = FakeMemPools::handle(static_cast<unsigned>(i));
    CHECK(streamed.give_back(streamed.take(64 * kMiB, pool)) == CUDA_SUCCESS);
    CHECK(streamed.destroy(pool) == CUDA_SUCCESS);
  }
  CHECK(streamed.program.charged() == 6400 * kMiB);
  CHECK(streamed.driver.timeline.live_events() < 80);
  streamed.driver.timeline.finish(context);
  streamed.driver.timeline.submit(context);
  CHECK(streamed.program.take(10240 * kMiB) != kUntouched);
}

TEST_CASE("where waiting does not help, a call is refused and the charge stays") {
  Streamed streamed(64 * kMiB);
  streamed.take(60 * kMiB);
  CHECK(streamed.program.take(kMiB) == kUntouched);
  CHECK(streamed.program.last == CUDA_ERROR_OUT_OF_MEMORY);
  CHECK(streamed.program.charged() == 64 * kMiB);
  CHECK(streamed.denied() == 1);
}

TEST_CASE("a block whose free the driver refused lives on, and ends once") {
  Streamed streamed(64 * kMiB);
  const CUdeviceptr address = streamed.take(64 * kMiB);
  streamed.driver.fails["cuMemFreeAsync"] = CUDA_ERROR_INVALID_VALUE;
  CHECK(streamed.give_back(address) == CUDA_ERROR_INVALID_VALUE);
  CHECK(streamed.program.tally().failed_frees == 1);
  streamed.driver.fails.clear();
  CHECK(streamed.give_back(address) == CUDA_SUCCESS);
  CHECK(streamed.give_back(address) == CUDA_ERROR_INVALID_VALUE);
  CHECK(streamed.program.tally().devices[0].frees == 1);
}

TEST_CASE("a pool that the program trims is charged what it then holds") {
  Streamed streamed(64 * kMiB);
  streamed.give_back(streamed.take(64 * kMiB));
  CHECK(streamed.program.parts.stream_memory.trim_pool("cuMemPoolTrimTo", streamed.memory.current, 0) == CUDA_SUCCESS);
  CHECK(streamed.program.charged() == 0);
}

TEST_CASE("where the driver does not say what a pool reserves, blocks are charged one by one") {
  Streamed streamed(64 * kMiB);
  driver::real.cuMemPoolGetAttribute.set(nullptr);
  const CUdeviceptr first = streamed.take(40 * kMiB);
  CHECK(streamed.program.charged() == 40 * kMiB);
  CHECK(streamed.take(25 * kMiB) == kUntouched);
  CHECK(streamed.take(24 * kMiB) != kUntouched);
  CHECK(streamed.give_back(first) == CUDA_SUCCESS);
  CHECK(streamed.take(40 * kMiB) != kUntouched);
}

TEST_CASE("a pool of the host's memory counts against no device") {
  Streamed streamed(kMiB);
  CUmemPoolProps host{};
  host.location.type = CU_MEM_LOCATION_TYPE_HOST;
  CUmemoryPool pool = nullptr;
  REQUIRE(streamed.program.parts.stream_memory.create_pool(&pool, &host, [&] {
    pool = FakeMemPools::handle(7);
    return CUDA_SUCCESS;
  }) == CUDA_SUCCESS);
  const CUdeviceptr address = streamed.take(50 * kMiB, FakeMemPools::handle(7));
  CHECK(address != kUntouched);
  CHECK(streamed.program.charged() == 0);
  CHECK(streamed.program.tally().host_bytes == 50 * kMiB);
  CHECK(streamed.give_back(address) == CUDA_SUCCESS);
  CHECK(streamed.program.tally().host_bytes == 0);
}

TEST_CASE("the log says what the pools reserve whenever that changes") {
  const ScratchFolder folder;
  Streamed streamed(200 * kMiB, folder / "log");
  streamed.give_back(streamed.take(kMiB));
  streamed.take(kMiB);  // in the same chunk
  streamed.take(40 * kMiB);
  std::vector<std::uint64_t> said;
  for (const json &line : of_type(log_lines(folder / "log"), "sample")) {
    said.push_back(line.at("pool_reserved"));
  }
  CHECK(said == std::vector<std::uint64_t>{32 * kMiB, 64 * kMiB});
}

TEST_CASE("a stream-ordered call waits for another that has reserved more than it needs") {
  Streamed streamed(64 * kMiB);
  streamed.take(kMiB);
  const std::thread::id first = std::this_thread::get_id();
  std::atomic<bool> tries{false};
  streamed.memory.on_asked = [&] { tries = tries || std::this_thread::get_id() != first; };
  std::thread other;
  CUdeviceptr others = kUntouched;
  streamed.memory.on_alloc = [&, context = FakeDriver::current] {
    if (std::this_thread::get_id() == first) {  // its bound is reserved: half of the limit
      other = std::thread([&, context] {
        FakeDriver::current = context;
        others = streamed.take(kMiB);
      });
      wait_until([&] { return tries.load(); });
    }
  };
  CHECK(streamed.take(kMiB) != kUntouched);
  other.join();
  CHECK(others != kUntouched);
  CHECK(streamed.denied() == 0);
}
