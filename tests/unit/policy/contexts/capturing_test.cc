// What a capturing program sees of its pool: captures stay valid, and records say what they kept from being cleaned.
#include <thread>

#include "catch.h"
#include "unit/events/log_lines.h"
#include "unit/events/scratch_folder.h"
#include "unit/policy/pooled_program.h"

using namespace ration;
using namespace ration::test;

namespace {

// A thread that has begun a capture and ends it on request.
class CapturingThread {
 public:
  CapturingThread(PooledProgram &program, CUcontext context, CUstream stream)
      : thread_([this, &program, context, stream] {
          FakeDriver::current = context;
          FakeTimeline::mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
          program.begin_capture(stream);
          begun_ = true;
          while (!told_) {
            std::this_thread::yield();
          }
          answer_ = program.end_capture(stream);
          ended_ = true;
        }) {
    while (!begun_) {
      std::this_thread::yield();
    }
  }
  ~CapturingThread() { end(); }
  CUresult end() {
    told_ = true;
    if (thread_.joinable()) {
      thread_.join();
    }
    return answer_;
  }
  void let_end() {
    told_ = true;
    while (!ended_) {
      std::this_thread::yield();
    }
  }

 private:
  std::atomic<bool> begun_{false}, told_{false}, ended_{false};
  CUresult answer_ = CUDA_ERROR_UNKNOWN;
  std::thread thread_;
};

}  // namespace

TEST_CASE("no driver call of Ration's own invalidates another thread's capture") {
  FakeDriver driver;
  PooledProgram program(driver, limit_of(4 * kSlab));
  const CUcontext context = program.create();
  const CUdeviceptr old = program.take(kMiB);
  driver.timeline.submit(context);
  program.free(old);  // sealed: a quarter of a slab and more
  CapturingThread capturing(program, context, driver.timeline.open_stream(context));
  driver.timeline.finish(context);
  CHECK(program.take(kWhole) != kUntouched);  // asks about what was sealed, and grows
  const CUdeviceptr second = program.take(kWhole);
  CHECK(second != kUntouched);
  CHECK(program.take(7 * kMiB) == kUntouched);  // gives back, and is denied
  CHECK(program.free_bytes() > 0);
  FakeDriver::current = nullptr;
  program.free(second);  // asks what the thread's state is
  FakeDriver::current = context;
  CHECK(capturing.end() == CUDA_SUCCESS);
  CHECK(driver.timeline.spoilt() == 0);
  CHECK(driver.timeline.forbidden().empty());
}

TEST_CASE(
    "a request outside the pool is refused while a capture forbids it as the driver does, which loses the capture") {
  FakeDriver driver;
  PooledProgram program(driver, limit_of(6 * kMiB));
  const CUcontext context = program.create();
  const CUdeviceptr whole = program.take(kWhole);
  REQUIRE(program.take(3 * kMiB) != kUntouched);
  REQUIRE(driver.live_blocks() == 2);
  program.free(whole);
  CapturingThread capturing(program, context, driver.timeline.open_stream(context));
  CHECK(program.take_direct(5 * kMiB / 2) == kUntouched);
  CHECK(driver.live_blocks() == 2);  // nobody can know whether the driver's free would wait
  CHECK(program.last == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  CHECK(program.denied(events::Reason::pool_holds) == 0);
  CHECK(capturing.end() == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

TEST_CASE("waiting for what was sealed before invalidates no capture") {
  FakeDriver driver;
  PooledProgram program(driver, limit_of(kSlab));
  const CUcontext context = program.create();
  driver.timeline.submit(context);
  program.free(program.take(kMiB));
  CapturingThread capturing(program, context, driver.timeline.open_stream(context));
  CHECK(program.take(kWhole) != kUntouched);
  CHECK(program.early() == 0);
  CHECK(driver.calls("cuEventSynchronize") == 1);
  CHECK(capturing.end() == CUDA_SUCCESS);
  CHECK(driver.timeline.forbidden().empty());
}

TEST_CASE("a free into a capturing stream is refused and the block lives on") {
  for (const bool newer : {true, false}) {
    INFO(newer);
    FakeDriver driver;
    if (!newer) {
      driver::real.cuStreamGetCaptureInfo.set(nullptr);
    }
    PooledProgram program(driver, limit_of(kSlab));
    const CUstream stream = driver.timeline.open_stream(program.create());
    const CUdeviceptr address = program.take(4096);
    REQUIRE(program.begin_capture(stream) == CUDA_SUCCESS);
    CHECK(program.free_async(address, stream) == CUDA_ERROR_INVALID_VALUE);
    CHECK(program.tally().failed_frees == 1);
    CHECK(program.tally().devices[0].frees == 0);
    CHECK(program.end_capture(stream) == CUDA_SUCCESS);
    CHECK(program.free_async(address, stream) == CUDA_SUCCESS);
  }
}

TEST_CASE("a free into an invalid stream returns the driver's error") {
  FakeDriver driver;
  PooledProgram program(driver, limit_of(kSlab));
  program.create();
  const CUdeviceptr address = program.take(4096);
  driver.fails["cuStreamGetCaptureInfo"] = CUDA_ERROR_INVALID_HANDLE;
  CHECK(program.free_async(address) == CUDA_ERROR_INVALID_HANDLE);
  CHECK(program.tally().devices[0].frees == 0);
}

TEST_CASE("an allocation of the capturing thread is denied, and the record says that it captured") {
  const ScratchFolder folder;
  FakeDriver driver;
  PooledProgram program(driver, limit_of(kSlab), folder / "log");
  const CUcontext context = program.create();
  const CUdeviceptr address = program.take(1024);
  program.free(address);
  const CUstream stream = driver.timeline.open_stream(context);
  REQUIRE(program.begin_capture(stream) == CUDA_SUCCESS);
  CHECK(program.take(kWhole) == kUntouched);
  CHECK(program.last == CUDA_ERROR_OUT_OF_MEMORY);
  CHECK(driver.calls("cuStreamGetCaptureInfo") < 10);  // it is not waited for
  CHECK(program.end_capture(stream) == CUDA_SUCCESS);
  CHECK(program.take(kWhole) != kUntouched);
  const std::vector<json> ooms = of_type(log_lines(folder / "log"), "oom");
  REQUIRE(ooms.size() == 1);
  CHECK(ooms[0].at("capturing") == true);
  CHECK(ooms[0].at("quarantined") == 1024);
  CHECK(driver.timeline.spoilt() == 0);
}

TEST_CASE("an allocation waits for another thread's capture before it is denied") {
  FakeDriver driver;
  PooledProgram program(driver, limit_of(kSlab));
  const CUcontext context = program.create();
  driver.timeline.submit(context);
  program.free(program.take(1024));
  CapturingThread capturing(program, context, driver.timeline.open_stream(context));
  int looks = 0;
  driver.on_capture_info = [&] {
    if (++looks == 3) {
      driver.on_capture_info = nullptr;
      capturing.let_end();
    }
  };
  CHECK(program.take(kWhole) != kUntouched);
  CHECK(program.early() == 0);
  CHECK(capturing.end() == CUDA_SUCCESS);
  CHECK(driver.timeline.spoilt() == 0);
}

TEST_CASE("a synchronous free during a capture does not wait for it") {
  FakeDriver driver;
  PooledProgram program(driver, limit_of(kSlab), "", mode_pool(true));
  const CUcontext context = program.create();
  const CUdeviceptr address = program.take(4096);
  CapturingThread capturing(program, context, driver.timeline.open_stream(context));
  CHECK(program.free(address) == CUDA_SUCCESS);
  CHECK(capturing.end() == CUDA_SUCCESS);
  CHECK(driver.timeline.spoilt() == 0);
}

TEST_CASE("a capture ends with the context of its stream, whatever was current when it began") {
  FakeDriver driver;
  driver::real.cuStreamGetCaptureInfo.set(nullptr);
  driver::real.cuStreamIsCapturing.set(nullptr);
  PooledProgram program(driver, limit_of(kSlab));
  const CUcontext gone = program.create();
  const CUcontext kept = program.create();
  program.free(program.take(1024));
  REQUIRE(program.begin_capture(driver.timeline.open_stream(gone)) == CUDA_SUCCESS);
  CHECK(program.take(kWhole) == kUntouched);
  CHECK(program.destroy(gone) == CUDA_SUCCESS);
  FakeDriver::current = kept;
  CHECK(program.take(kWhole) != kUntouched);
}

TEST_CASE("a capture that ended with its context is in no record") {
  const ScratchFolder folder;
  FakeDriver driver;
  PooledProgram program(driver, limit_of(kSlab), folder / "log");
  const CUcontext context = program.create();
  REQUIRE(program.take(1024) != kUntouched);
  REQUIRE(program.begin_capture(driver.timeline.open_stream(context)) == CUDA_SUCCESS);
  CHECK(program.destroy(context) == CUDA_SUCCESS);
  program.create();
  CHECK(program.take(kSlab + 1) == kUntouched);
  CHECK(of_type(log_lines(folder / "log"), "oom").at(0).at("capturing") == false);
}

TEST_CASE("a stream that is destroyed in the middle of its capture is waited for no longer") {
  FakeDriver driver;
  PooledProgram program(driver, limit_of(kSlab));
  const CUstream stream = driver.timeline.open_stream(program.create());
  program.free(program.take(1024));
  REQUIRE(program.begin_capture(stream) == CUDA_SUCCESS);
  CHECK(program.take(kWhole) == kUntouched);
  CHECK(program.destroy_stream(stream) == CUDA_SUCCESS);
  CHECK(program.take(kWhole) != kUntouched);
  CHECK(driver.timeline.dead_uses() == 0);
}

TEST_CASE("threads that capture and threads that allocate leave every capture valid and no block with two owners") {
  FakeDriver driver;
  PooledProgram program(driver, limit_of(2 * kSlab));
  const CUcontext context = program.create();
  std::vector<std::thread> threads;
  std::atomic<int> begun{0};
  std::atomic<int> whole{0};
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&, thread] {
      FakeDriver::current = context;
      FakeTimeline::mode = CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;  // what the pool leaves to the driver is the program's
      const CUstream stream = driver.timeline.open_stream(context);
      for (int round = 0; round < 200; ++round) {
        if (thread < 2) {
          begun += program.begin_capture(stream) == CUDA_SUCCESS ? 1 : 0;
          std::this_thread::yield();
          whole += program.end_capture(stream) == CUDA_SUCCESS ? 1 : 0;
          continue;
        }
        const CUdeviceptr address = program.take(700'000);
        driver.timeline.submit(context);
        if (address != kUntouched) {
          program.free(address);
        }
        driver.timeline.finish(context);
      }
    });
  }
  for (std::thread &thread : threads) {
    thread.join();
  }
  CHECK(begun == 400);
  CHECK(whole == 400);
  for (const std::string &function : driver.timeline.forbidden()) {
    FAIL_CHECK(function);
  }
  CHECK(driver.timeline.spoilt() == 0);
  CHECK(program.early() == 0);
}
