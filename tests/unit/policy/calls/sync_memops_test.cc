// SYNC_MEMOPS of blocks: where the driver keeps it, where Ration does, and how a call waits then.
#include "policy/calls/sync_memops.h"

#include "catch.h"
#include "unit/policy/fake_call.h"
#include "unit/policy/pooled_program.h"

using namespace ration;
using namespace ration::test;
using Work = policy::DeviceReach::Work;

namespace {

// What the driver was asked to wait for, in which capture mode, and what it answers.
struct Waits {
  Waits() {
    waits = this;
    fill(
        driver::real.cuStreamSynchronize, +[](CUstream stream) {
          return call("cuStreamSynchronize", [&] {
            waits->streams.push_back(stream);
            waits->mode = FakeTimeline::mode;
            return waits->answer;
          });
        });
  }
  ~Waits() { driver::real.cuStreamSynchronize.set(nullptr); }
  Waits(const Waits &) = delete;
  Waits &operator=(const Waits &) = delete;

  std::vector<CUstream> streams;
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  CUresult answer = CUDA_SUCCESS;
  static inline Waits *waits = nullptr;
};

// A program with two blocks. Its pool becomes one of granules on demand; nothing is mapped for that.
struct Marking {
  Marking() {
    program.create();
    block = program.take(4096);
    neighbour = program.take(4096);
  }
  void use_granules() {
    pool::SharedPool &blocks = policy::existing_pool(*program.parts.contexts.current().context)->blocks;
    REQUIRE(blocks.stitch_from({2 * kMiB, 0x900000000, 64 * kMiB, 0xa00000000, 64 * kMiB, 77}));
  }
  CUresult set(CUdeviceptr address, unsigned value, CUresult of_driver = CUDA_SUCCESS) {
    return program.parts.queries.set_attribute(CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, address, &value, [&] {
      ++asked;
      return of_driver;
    });
  }
  unsigned seen(CUdeviceptr address, unsigned of_driver) {
    program.parts.queries.correct_attribute(CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, address, &of_driver);
    return of_driver;
  }

  FakeDriver driver;
  Waits waits;
  PooledProgram program{driver, limit_of(16 * kMiB)};
  policy::DeviceReach &reach = program.parts.device_reach;
  CUdeviceptr block = 0, neighbour = 0;
  int asked = 0;  // the driver
};

}  // namespace

TEST_CASE_METHOD(Marking, "the driver keeps SYNC_MEMOPS for slabs, each block has its own value") {
  CHECK(set(block, 1) == CUDA_SUCCESS);
  CHECK(asked == 1);
  CHECK(seen(block + 5, 1) == 1);
  CHECK(seen(neighbour, 1) == 0);
  CHECK_FALSE(reach.has_marked_blocks());
}

TEST_CASE_METHOD(Marking, "what the driver refuses for a slab is refused") {
  CHECK(set(block, 1, CUDA_ERROR_NOT_SUPPORTED) == CUDA_ERROR_NOT_SUPPORTED);
  CHECK(seen(block, 0) == 0);
}

TEST_CASE_METHOD(Marking, "for granules it is kept here, until it is taken off or the block is freed") {
  use_granules();
  CHECK(set(block + 5, 1, CUDA_ERROR_NOT_SUPPORTED) == CUDA_SUCCESS);
  CHECK(asked == 0);
  CHECK(seen(block, 0) == 1);
  CHECK(seen(neighbour, 0) == 0);
  CHECK(reach.has_marked_blocks());
  CHECK(reach.is_marked(Work{.addresses = {block + 4095, 0}}));
  CHECK(reach.is_marked(Work{.addresses = {0x1234, block}}));
  CHECK_FALSE(reach.is_marked(Work{.addresses = {neighbour, 0x1234}}));
  CHECK_FALSE(reach.is_marked(Work{}));
  SECTION("taken off") {
    CHECK(set(block, 0) == CUDA_SUCCESS);
    CHECK(seen(block, 0) == 0);
  }
  SECTION("freed") {
    CHECK(program.free(block) == CUDA_SUCCESS);
    CHECK(set(block, 1) == CUDA_ERROR_INVALID_VALUE);
  }
  CHECK_FALSE(reach.is_marked(Work{.addresses = {block, block}}));
}

TEST_CASE_METHOD(Marking, "without a current context nothing is marked") {
  use_granules();
  FakeDriver::current = nullptr;
  CHECK(set(block, 1) != CUDA_SUCCESS);
  CHECK_FALSE(reach.is_marked(Work{.addresses = {block, 0}}));
}

TEST_CASE_METHOD(Marking, "a driver that cannot wait for a stream is asked also for granules") {
  use_granules();
  driver::real.cuStreamSynchronize.set(nullptr);
  CHECK(set(block, 1, CUDA_ERROR_NOT_SUPPORTED) == CUDA_ERROR_NOT_SUPPORTED);
  CHECK_FALSE(reach.has_marked_blocks());
}

TEST_CASE_METHOD(Marking, "a call waits for its default stream, beside captures, and hears of its errors") {
  CHECK(policy::DeviceReach::wait(Work{.stream = CU_STREAM_PER_THREAD}) == CUDA_SUCCESS);
  waits.answer = CUDA_ERROR_ILLEGAL_ADDRESS;
  CHECK(policy::DeviceReach::wait(Work{.stream = CU_STREAM_LEGACY}) == CUDA_ERROR_ILLEGAL_ADDRESS);
  CHECK(waits.streams == std::vector<CUstream>{CU_STREAM_PER_THREAD, CU_STREAM_LEGACY});
  CHECK(waits.mode == CU_STREAM_CAPTURE_MODE_RELAXED);
  CHECK(FakeTimeline::mode == CU_STREAM_CAPTURE_MODE_GLOBAL);
}

TEST_CASE_METHOD(Marking, "a stream that captures has nothing to wait for") {
  SECTION("itself") {
    REQUIRE(program.begin_capture(CU_STREAM_PER_THREAD) == CUDA_SUCCESS);
    CHECK(policy::DeviceReach::wait(Work{.stream = CU_STREAM_PER_THREAD}) == CUDA_SUCCESS);
    REQUIRE(program.end_capture(CU_STREAM_PER_THREAD) == CUDA_SUCCESS);
  }
  SECTION("through another") {
    driver.fails["cuStreamGetCaptureInfo"] = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    CHECK(policy::DeviceReach::wait(Work{.stream = CU_STREAM_LEGACY}) == CUDA_SUCCESS);
  }
  CHECK(waits.streams.empty());
}
