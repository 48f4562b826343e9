// What has a handle instead of an address, and what is written down without being limited.
#include "catch.h"
#include "unit/events/log_lines.h"
#include "unit/events/scratch_folder.h"
#include "unit/policy/program.h"

using namespace ration;
using namespace ration::test;

namespace {

// A door whose handles are blocks of the fake driver.
struct Arrays {
  explicit Arrays(Program &its_program) : program(its_program) {}
  CUdeviceptr create(std::uint64_t bound, std::uint64_t taken) {
    CUdeviceptr handle = kUntouched;
    policy::Request request{"cuArray3DCreate_v2", bound, bound, nullptr};
    request.kind = events::Kind::array;
    last = program.policy.create_array(
        request,
        [&](policy::Obtained &got) {
          got.bytes = taken;
          return driver::real.cuMemAlloc_v2(&got.address, taken);
        },
        [](CUdeviceptr made) { return driver::real.cuMemFree_v2(made); }, &handle);
    return handle;
  }
  CUresult destroy(CUdeviceptr handle) {
    return program.policy.destroy_array("cuArrayDestroy", handle, [&] { return driver::real.cuMemFree_v2(handle); });
  }
  Program &program;
  CUresult last = CUDA_SUCCESS;
};

CUresult pin(Program &program, void *address, std::uint64_t bytes) {
  policy::Request request{"cuMemHostAlloc", bytes, bytes, nullptr};
  request.kind = events::Kind::host;
  request.charged = false;
  return program.policy.allocate_host(
      request,
      [&](policy::Obtained &got) {
        got = {reinterpret_cast<std::uintptr_t>(address), bytes};
        return CUDA_SUCCESS;
      },
      [](CUdeviceptr) { return CUDA_SUCCESS; });
}

}  // namespace

TEST_CASE("an array is charged what the driver says that it took, and gives it back once") {
  FakeDriver driver;
  Program program(limit_of(100 * kMiB));
  program.create();
  Arrays arrays(program);
  const CUdeviceptr first = arrays.create(60 * kMiB, 40 * kMiB);
  CHECK(program.charged() == 40 * kMiB);
  CHECK(arrays.create(61 * kMiB, 40 * kMiB) == kUntouched);  // the bound decides
  CHECK(arrays.last == CUDA_ERROR_OUT_OF_MEMORY);
  CHECK(program.denied(events::Reason::limit) == 1);
  CHECK(arrays.create(60 * kMiB, 60 * kMiB) != kUntouched);
  CHECK(program.charged() == driver.used(0));
  CHECK(arrays.destroy(first) == CUDA_SUCCESS);
  CHECK(arrays.destroy(first) != CUDA_SUCCESS);
  CHECK(program.charged() == 60 * kMiB);
  CHECK(program.charged() == driver.used(0));
}

TEST_CASE("an array that took more than its bound is held to the limit all the same") {
  FakeDriver driver;
  Program program(limit_of(100 * kMiB));
  program.create();
  Arrays arrays(program);
  CHECK(arrays.create(10 * kMiB, 100 * kMiB) != kUntouched);
  CHECK(program.charged() == 100 * kMiB);
  CHECK(arrays.create(0, 1) == kUntouched);
  CHECK(arrays.last == CUDA_ERROR_OUT_OF_MEMORY);
  CHECK(program.charged() == driver.used(0));
}

TEST_CASE("a handle and an address of the same value are two things") {
  FakeDriver driver;
  Program program(limit_of(100 * kMiB));
  program.create();
  Arrays arrays(program);
  const CUdeviceptr handle = arrays.create(30 * kMiB, 30 * kMiB);
  driver.fails["cuMemFree_v2"] = CUDA_ERROR_INVALID_VALUE;
  CHECK(program.free(handle) == CUDA_ERROR_INVALID_VALUE);
  CHECK(program.charged() == 30 * kMiB);
  driver.fails.clear();
  CHECK(arrays.destroy(handle) == CUDA_SUCCESS);
  CHECK(program.charged() == 0);
}

TEST_CASE("an array goes with its context, unless the driver refuses that") {
  FakeDriver driver;
  const ScratchFolder folder;
  Program program(limit_of(100 * kMiB), folder / "log");
  const CUcontext context = program.create();
  Arrays arrays(program);
  const CUdeviceptr handle = arrays.create(30 * kMiB, 30 * kMiB);
  driver.fails["cuCtxDestroy_v2"] = CUDA_ERROR_INVALID_CONTEXT;
  CHECK(program.destroy(context) != CUDA_SUCCESS);
  CHECK(program.charged() == 30 * kMiB);
  driver.fails.clear();
  CHECK(program.destroy(context) == CUDA_SUCCESS);
  CHECK(program.charged() == 0);
  const auto lines = log_lines(folder / "log");
  CHECK(lines.at(1).at("kind") == "array");
  CHECK(lines.at(2).at("t") == "free");
  CHECK(lines.at(2).at("kind") == "array");
  CHECK(lines.at(2).at("api") == "cuCtxDestroy_v2");
  CHECK(arrays.destroy(handle) != CUDA_SUCCESS);
}

TEST_CASE("pinned memory of the host is counted apart, whatever the limit") {
  FakeDriver driver;
  const ScratchFolder folder;
  Program program(limit_of(kMiB), folder / "log");
  program.create();
  int memory = 0;
  CHECK(pin(program, &memory, 50 * kMiB) == CUDA_SUCCESS);
  CHECK(program.charged() == 0);
  CHECK(program.tally().host_bytes == 50 * kMiB);
  CHECK(program.tally().devices[0].live_bytes == 0);
  CHECK(program.policy.free_host("cuMemFreeHost", &memory, [] { return CUDA_SUCCESS; }) == CUDA_SUCCESS);
  CHECK(program.tally().host_bytes == 0);
  CHECK(program.tally().host_peak_bytes == 50 * kMiB);
  const auto lines = log_lines(folder / "log");
  CHECK(lines.at(1).at("kind") == "host");
  CHECK(lines.at(1).at("charged") == false);
  CHECK(lines.at(2).at("kind") == "host");
}
