// What has a handle instead of an address, and what is written down without being limited.
#include "catch.h"
#include "unit/events/log_lines.h"
#include "unit/events/scratch_folder.h"
#include "unit/policy/fake_arrays.h"

using namespace ration;
using namespace ration::test;

namespace {

CUresult pin(Program &program, void *address, std::uint64_t bytes) {
  CUdeviceptr pinned = 0;
  return program.parts.host_memory.allocate(
      {"cuMemHostAlloc", bytes, bytes, nullptr},
      [&](policy::Obtained &got) {
        got = {reinterpret_cast<std::uintptr_t>(address), bytes};
        return CUDA_SUCCESS;
      },
      [](CUdeviceptr) { return CUDA_SUCCESS; }, &pinned);
}

}  // namespace

TEST_CASE("a handle and an address of the same value are two things") {
  FakeDriver driver;
  Program program(limit_of(100 * kMiB));
  program.create();
  const FakeArrays made(FakeArrays::Tells::kNothing);
  ArrayProgram arrays(program);
  const CUdeviceptr handle = arrays.create(shape_of(30));
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
  const FakeArrays made(FakeArrays::Tells::kNothing);
  ArrayProgram arrays(program);
  const CUdeviceptr handle = arrays.create(shape_of(30));
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
  CHECK(program.parts.host_memory.free("cuMemFreeHost", &memory, [] { return CUDA_SUCCESS; }) == CUDA_SUCCESS);
  CHECK(program.tally().host_bytes == 0);
  CHECK(program.tally().host_peak_bytes == 50 * kMiB);
  const auto lines = log_lines(folder / "log");
  CHECK(lines.at(1).at("kind") == "host");
  CHECK(lines.at(1).at("charged") == false);
  CHECK(lines.at(2).at("kind") == "host");
}
