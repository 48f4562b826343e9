// Contexts that the driver destroyed by calls that we did not see: what they held is released all the same.
#include "catch.h"
#include "unit/policy/pooled_program.h"

using namespace ration;
using namespace ration::test;

namespace {

// A context with a slab, a block of the driver's own, which then ends unseen.
struct Ended {
  Ended() {
    other = program.create(1);
    gone = program.create();
    REQUIRE(program.take(kMiB) != kUntouched);
    REQUIRE(program.take_direct(kMiB) != kUntouched);
    REQUIRE(driver.destroy(gone) == CUDA_SUCCESS);
  }
  FakeDriver driver;
  PooledProgram program{driver, limit_of(8 * kSlab)};
  CUcontext other = nullptr, gone = nullptr;
};

}  // namespace

TEST_CASE("what a context held that a fence finds destroyed is released by the next call that makes or ends one") {
  Ended ended;
  FakeDriver::current = ended.other;
  policy::Fence fence;
  CUresult error = CUDA_SUCCESS;
  {
    const policy::CaptureExclusion exclusion(ended.program.parts.captures);
    CHECK(ended.program.parts.fences.take(fence, error) == policy::FenceTracker::Taken::taken);
  }
  ended.program.parts.fences.recycle(fence);
  CHECK(ended.program.charged(0) == 3 * kMiB);
  CHECK(ended.program.destroy(ended.other) == CUDA_SUCCESS);
  CHECK(ended.program.charged(0) == 0);
  CHECK(ended.program.parts.contexts.live().empty());
}

TEST_CASE("what a context held whose handle comes back is released at once") {
  Ended ended;
  REQUIRE(ended.program.create() == ended.gone);
  CHECK(ended.program.charged(0) == 0);
}
