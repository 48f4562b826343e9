// Physical memory through the policy: what is charged for it, refused, and given back.
#include "catch.h"
#include "unit/events/log_lines.h"
#include "unit/events/scratch_folder.h"
#include "unit/policy/pieces.h"

using namespace ration;
using namespace ration::test;

TEST_CASE("physical memory is charged to the last byte of the limit, and refused behind it with the handle untouched") {
  FakeDriver driver;
  Program program(limit_of(10 * kMiB));
  program.create();
  Pieces pieces(program);
  const CUmemGenericAllocationHandle handle = pieces.create(10 * kMiB);
  CHECK(handle != kUntouched);
  CHECK(program.charged() == 10 * kMiB);
  CHECK(pieces.create(1) == kUntouched);
  CHECK(pieces.last == CUDA_ERROR_OUT_OF_MEMORY);
  CHECK(program.denied(events::Reason::limit) == 1);
  CHECK(driver.asked().size() == 1);  // the driver never heard of it
  CHECK(pieces.release(handle) == CUDA_SUCCESS);
  CHECK(program.charged() == 0);
  CHECK(pieces.create(10 * kMiB) != kUntouched);
}

TEST_CASE("it is charged to the device that it lies on, whatever is current") {
  FakeDriver driver;
  Program program(limit_of(10 * kMiB));
  program.create(0);
  Pieces pieces(program);
  pieces.create(10 * kMiB, 1);
  CHECK(program.charged(0) == 0);
  CHECK(program.charged(1) == 10 * kMiB);
  CHECK(pieces.create(kMiB, 1) == kUntouched);
  CHECK(pieces.create(kMiB, 0) != kUntouched);
}

TEST_CASE("where the driver refuses, nothing stays charged and its code goes back") {
  FakeDriver driver;
  Program program(limit_of(10 * kMiB));
  program.create();
  Pieces pieces(program);
  driver.fails["cuMemAlloc_v2"] = CUDA_ERROR_NOT_PERMITTED;
  CHECK(pieces.create(kMiB) == kUntouched);
  CHECK(pieces.last == CUDA_ERROR_NOT_PERMITTED);
  CHECK(program.charged() == 0);
  CHECK(program.tally().failed_allocs == 1);
  driver.fails["cuMemAlloc_v2"] = CUDA_ERROR_OUT_OF_MEMORY;
  CHECK(pieces.create(kMiB) == kUntouched);
  CHECK(program.denied(events::Reason::device) == 1);
  CHECK(program.charged() == 0);
}

TEST_CASE("memory of the host is written down and not limited") {
  FakeDriver driver;
  Program program(limit_of(kMiB));
  program.create();
  Pieces pieces(program);
  const CUmemGenericAllocationHandle handle = pieces.create(50 * kMiB, 0, CU_MEM_LOCATION_TYPE_HOST_NUMA);
  CHECK(handle != kUntouched);
  CHECK(program.charged() == 0);
  CHECK(program.tally().host_bytes == 50 * kMiB);
  CHECK(pieces.release(handle) == CUDA_SUCCESS);
  CHECK(program.tally().host_bytes == 0);
}

TEST_CASE("what is mapped stays charged behind its release, and goes with the unmapping") {
  FakeDriver driver;
  const ScratchFolder folder;
  Program program(limit_of(10 * kMiB), folder / "log");
  program.create();
  Pieces pieces(program);
  const CUmemGenericAllocationHandle handle = pieces.create(kMiB);
  CHECK(pieces.map(handle) == CUDA_SUCCESS);
  CHECK(pieces.release(handle) == CUDA_SUCCESS);
  CHECK(program.charged() == kMiB);
  CHECK(pieces.unmap() == CUDA_SUCCESS);
  CHECK(program.charged() == 0);
  const std::vector<json> frees = of_type(log_lines(folder / "log"), "free");
  REQUIRE(frees.size() == 1);
  CHECK(frees[0].at("api") == "cuMemUnmap");
  CHECK(frees[0].at("kind") == "vmm");
}

TEST_CASE("a retained handle keeps it charged behind release and unmapping") {
  FakeDriver driver;
  Program program(limit_of(10 * kMiB));
  program.create();
  Pieces pieces(program);
  const CUmemGenericAllocationHandle handle = pieces.create(kMiB);
  pieces.map(handle);
  CHECK(pieces.retain(kRange + 5, handle) == CUDA_SUCCESS);
  CHECK(pieces.release(handle) == CUDA_SUCCESS);
  CHECK(pieces.unmap() == CUDA_SUCCESS);
  CHECK(program.charged() == kMiB);
  CHECK(pieces.release(handle) == CUDA_SUCCESS);
  CHECK(program.charged() == 0);
}

TEST_CASE("calls that the driver refuses change no charge, and leave what they were about to end") {
  FakeDriver driver;
  Program program(limit_of(10 * kMiB));
  program.create();
  Pieces pieces(program);
  const CUmemGenericAllocationHandle handle = pieces.create(kMiB);
  pieces.code = CUDA_ERROR_INVALID_VALUE;
  CHECK(pieces.map(handle) == CUDA_ERROR_INVALID_VALUE);
  CHECK(pieces.release(handle) == CUDA_ERROR_INVALID_VALUE);
  pieces.code = CUDA_SUCCESS;
  CHECK(pieces.map(handle) == CUDA_SUCCESS);
  pieces.code = CUDA_ERROR_INVALID_VALUE;
  CHECK(pieces.retain(kRange, handle) == CUDA_ERROR_INVALID_VALUE);
  CHECK(pieces.unmap() == CUDA_ERROR_INVALID_VALUE);
  CHECK(program.charged() == kMiB);
  pieces.code = CUDA_SUCCESS;
  CHECK(pieces.unmap() == CUDA_SUCCESS);
  CHECK(pieces.release(handle) == CUDA_SUCCESS);
  CHECK(program.charged() == 0);
}

TEST_CASE("a second release, and calls about what is none of ours, are the driver's to answer") {
  FakeDriver driver;
  Program program(limit_of(10 * kMiB));
  program.create();
  Pieces pieces(program);
  const CUmemGenericAllocationHandle handle = pieces.create(kMiB);
  pieces.create(2 * kMiB);
  CHECK(pieces.release(handle) == CUDA_SUCCESS);
  for (const CUresult code : {CUDA_ERROR_INVALID_VALUE, CUDA_SUCCESS}) {  // of an imported one, say
    pieces.code = code;
    CHECK(pieces.release(handle) == code);
    CHECK(pieces.map(0x1234) == code);
    CHECK(pieces.retain(kRange, 0x1234) == code);
    CHECK(pieces.unmap() == code);
    CHECK(program.charged() == 2 * kMiB);
  }
}
