// Physical memory on which arrays lie: how long it stays charged.
#include <new>

#include "catch.h"
#include "unit/events/log_lines.h"
#include "unit/events/scratch_folder.h"
#include "unit/policy/fake_arrays.h"
#include "unit/policy/pieces.h"

using namespace ration;
using namespace ration::test;

namespace {

struct Canvas {
  explicit Canvas(std::string log = "") : program(limit_of(10 * kMiB), std::move(log)) {}
  CUdeviceptr sparse(unsigned flag = CUDA_ARRAY3D_SPARSE) { return arrays.create(shape_of(1, flag)); }

  FakeDriver driver;
  FakeArrays made{FakeArrays::Tells::kNothing};
  Program program;
  const CUcontext context = program.create();
  ArrayProgram arrays{program};
  Pieces pieces{program};
};

}  // namespace

TEST_CASE("memory that an array lies on is charged behind its release, until it is unmapped") {
  const ScratchFolder folder;
  Canvas canvas(folder / "log");
  const CUdeviceptr array = canvas.sparse();
  const CUmemGenericAllocationHandle handle = canvas.pieces.create(2 * kMiB);
  CHECK(canvas.pieces.place(array, handle, 0, 4) == CUDA_SUCCESS);
  CHECK(canvas.pieces.release(handle) == CUDA_SUCCESS);
  CHECK(canvas.program.charged() == 2 * kMiB);
  CHECK(canvas.pieces.create(9 * kMiB) == kUntouched);
  for (unsigned tile = 0; tile < 4; ++tile) {
    CHECK(canvas.program.charged() == 2 * kMiB);
    CHECK(canvas.pieces.place(array, 0, tile) == CUDA_SUCCESS);
  }
  CHECK(canvas.program.charged() == 0);
  const auto frees = of_type(log_lines(folder / "log"), "free");
  REQUIRE(frees.size() == 1);
  CHECK(frees[0].at("api") == "cuMemMapArrayAsync");
  CHECK(frees[0].at("kind") == "vmm");
}

TEST_CASE("unmapped first, released first, and mapped over: the last hold decides") {
  Canvas canvas;
  const CUdeviceptr array = canvas.sparse();
  const CUmemGenericAllocationHandle first = canvas.pieces.create(kMiB), second = canvas.pieces.create(2 * kMiB);
  CHECK(canvas.pieces.place(array, first) == CUDA_SUCCESS);
  CHECK(canvas.pieces.place(array, first, 5) == CUDA_SUCCESS);
  CHECK(canvas.pieces.place(array, 0, 5) == CUDA_SUCCESS);
  CHECK(canvas.pieces.release(first) == CUDA_SUCCESS);
  CHECK(canvas.program.charged() == 3 * kMiB);
  CHECK(canvas.pieces.place(array, second) == CUDA_SUCCESS);  // over the first
  CHECK(canvas.program.charged() == 2 * kMiB);
  CHECK(canvas.pieces.place(array, 0) == CUDA_SUCCESS);
  CHECK(canvas.program.charged() == 2 * kMiB);
  CHECK(canvas.pieces.release(second) == CUDA_SUCCESS);
  CHECK(canvas.program.charged() == 0);
}

TEST_CASE("what a stream has yet to unmap stays charged until the stream got there") {
  Canvas canvas;
  const CUdeviceptr array = canvas.sparse();
  const CUmemGenericAllocationHandle handle = canvas.pieces.create(9 * kMiB);
  canvas.pieces.place(array, handle);
  canvas.driver.streams_wait = true;
  CHECK(canvas.pieces.place(array, 0) == CUDA_SUCCESS);
  CHECK(canvas.pieces.release(handle) == CUDA_SUCCESS);
  CHECK(canvas.program.charged() == 9 * kMiB);
  SECTION("and somebody looks") {
    CHECK(canvas.program.memory().free_bytes == kMiB);
    canvas.driver.streams_wait = false;
    CHECK(canvas.program.memory().free_bytes == 10 * kMiB);
  }
  SECTION("which a request that needs it waits for") {
    CHECK(canvas.pieces.create(9 * kMiB) != kUntouched);
    CHECK(canvas.program.charged() == 9 * kMiB);
  }
  SECTION("or its context has gone") {
    CHECK(canvas.program.destroy(canvas.context) == CUDA_SUCCESS);
    CHECK(canvas.program.charged() == 0);
  }
}

TEST_CASE("an array lets go of all of its memory when it is destroyed, or goes with its context") {
  Canvas canvas;
  for (const unsigned flag : {unsigned{CUDA_ARRAY3D_SPARSE}, unsigned{CUDA_ARRAY3D_DEFERRED_MAPPING}}) {
    const CUdeviceptr array = canvas.sparse(flag);
    const CUmemGenericAllocationHandle handle = canvas.pieces.create(kMiB);
    CHECK(canvas.pieces.place(array, handle, 1) == CUDA_SUCCESS);
    CHECK(canvas.pieces.place(array, handle, 7) == CUDA_SUCCESS);
    CHECK(canvas.pieces.release(handle) == CUDA_SUCCESS);
    CHECK(canvas.program.charged() == kMiB);
    canvas.driver.fails["cuArrayDestroy"] = CUDA_ERROR_INVALID_VALUE;
    CHECK(canvas.arrays.destroy(array) == CUDA_ERROR_INVALID_VALUE);
    CHECK(canvas.program.charged() == kMiB);
    canvas.driver.fails.clear();
    CHECK(canvas.arrays.destroy(array) == CUDA_SUCCESS);
    CHECK(canvas.program.charged() == 0);
  }
  const CUdeviceptr array = canvas.sparse();
  const CUmemGenericAllocationHandle handle = canvas.pieces.create(kMiB);
  canvas.pieces.place(array, handle);
  canvas.pieces.release(handle);
  CHECK(canvas.program.destroy(canvas.context) == CUDA_SUCCESS);
  CHECK(canvas.program.charged() == 0);
}

TEST_CASE("an array of deferred mapping lies on one piece, whatever the entry says of a subresource") {
  Canvas canvas;
  const CUdeviceptr array = canvas.sparse(CUDA_ARRAY3D_DEFERRED_MAPPING);
  const CUmemGenericAllocationHandle first = canvas.pieces.create(kMiB), second = canvas.pieces.create(2 * kMiB);
  canvas.pieces.place(array, first, 1);
  canvas.pieces.release(first);
  CHECK(canvas.pieces.place(array, second, 2) == CUDA_SUCCESS);
  CHECK(canvas.program.charged() == 2 * kMiB);
  canvas.pieces.release(second);
  CHECK(canvas.pieces.place(array, 0, 3) == CUDA_SUCCESS);
  CHECK(canvas.program.charged() == 0);
}

TEST_CASE(
    "an operation that the driver refuses changes nothing, and one about a handle that is none of ours is noted") {
  Canvas canvas;
  const CUdeviceptr array = canvas.sparse();
  const CUmemGenericAllocationHandle handle = canvas.pieces.create(kMiB);
  canvas.pieces.code = CUDA_ERROR_INVALID_VALUE;
  CHECK(canvas.pieces.place(array, handle) == CUDA_ERROR_INVALID_VALUE);
  canvas.pieces.code = CUDA_SUCCESS;
  CHECK(canvas.pieces.release(handle) == CUDA_SUCCESS);
  CHECK(canvas.program.charged() == 0);
  const CUmemGenericAllocationHandle other = canvas.pieces.create(kMiB);
  canvas.pieces.place(array, other);
  canvas.pieces.release(other);
  canvas.pieces.code = CUDA_ERROR_INVALID_VALUE;
  CHECK(canvas.pieces.place(array, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(canvas.program.charged() == kMiB);
  canvas.pieces.code = CUDA_SUCCESS;
  CHECK(canvas.pieces.place(array, 0x1234) == CUDA_SUCCESS);  // imported, say: it takes the place of ours
  CHECK(canvas.program.charged() == 0);
}

TEST_CASE("without memory of the host nothing that an array lies on is given back early") {
  for (int left = 0; left < 40; ++left) {
    Canvas canvas;
    const CUdeviceptr array = canvas.sparse();
    const CUmemGenericAllocationHandle first = canvas.pieces.create(kMiB), second = canvas.pieces.create(2 * kMiB);
    REQUIRE(canvas.pieces.place(array, first, 0, 4) == CUDA_SUCCESS);
    bool mapped = false;
    allocations_left = left;
    try {
      mapped = canvas.pieces.place(array, second, 1, 2) == CUDA_SUCCESS;
    } catch (const std::bad_alloc &) {  // as the hooks' boundary does
    }
    allocations_left = -1;
    canvas.pieces.release(first);
    canvas.pieces.release(second);
    CHECK(canvas.program.charged() >= (mapped ? 3 : 1) * kMiB);
  }
}
