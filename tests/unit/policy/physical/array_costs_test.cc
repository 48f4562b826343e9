// What arrays are charged: the driver's word where it gives one, the bound else.
#include "policy/physical/array_costs.h"

#include <memory>
#include <new>
#include <optional>

#include "catch.h"
#include "unit/policy/fake_arrays.h"

using namespace ration;
using namespace ration::test;
using Tells = FakeArrays::Tells;

namespace {

struct ArrayStudio {
  explicit ArrayStudio(Tells tells, std::uint64_t limit = 100 * kMiB) : arrays(tells), program(limit_of(limit)) {
    program.create();
    reached.emplace(program);
  }
  FakeDriver driver;
  FakeArrays arrays;
  Program program;
  std::optional<ArrayProgram> reached;
  ArrayProgram &its() { return reached.value(); }
};

policy::Contexts::Current somewhere() {
  return {std::make_shared<policy::Context>()};
}

// Nine tenths of the bound.
std::uint64_t nine_tenths_of(const CUDA_ARRAY3D_DESCRIPTOR &shape) {
  return std::max<std::uint64_t>(1, shape.Width * shape.Height * 9 / 10);
}

}  // namespace

TEST_CASE("an array is charged what the driver tells of arrays of its shape, and gives it back once") {
  for (const Tells tells : {Tells::kDeferred, Tells::kAll}) {
    INFO("tells of " << (tells == Tells::kAll ? "all" : "deferred ones"));
    ArrayStudio recorder(tells);
    recorder.arrays.needs = nine_tenths_of;
    const CUdeviceptr first = recorder.its().create(shape_of(40));
    CHECK(recorder.program.charged() == 36 * kMiB);
    CHECK(recorder.its().create(shape_of(40)) != kUntouched);
    CHECK(recorder.program.charged() == 72 * kMiB);
    CHECK(recorder.its().create(shape_of(40)) == kUntouched);
    CHECK(recorder.its().last == CUDA_ERROR_OUT_OF_MEMORY);
    CHECK(recorder.program.denied(events::Reason::limit) == 1);
    CHECK(recorder.program.charged() == recorder.driver.used(0));
    CHECK(recorder.its().destroy(first) == CUDA_SUCCESS);
    CHECK(recorder.its().destroy(first) != CUDA_SUCCESS);
    CHECK(recorder.program.charged() == recorder.driver.used(0));
    CHECK(recorder.arrays.live() == 1);  // and none of ours
    CHECK(recorder.arrays.most_at_once <= 100 * kMiB);
  }
}

TEST_CASE("where the driver tells nothing an array is charged its bound") {
  ArrayStudio recorder(Tells::kNothing);
  recorder.arrays.needs = nine_tenths_of;
  const CUdeviceptr first = recorder.its().create(shape_of(60));
  CHECK(recorder.program.charged() == 60 * kMiB);
  CHECK(recorder.its().create(shape_of(41)) == kUntouched);  // although the driver would have room in the limit
  CHECK(recorder.its().create(shape_of(40)) != kUntouched);
  CHECK(recorder.program.charged() == 100 * kMiB);
  CHECK(recorder.its().destroy(first) == CUDA_SUCCESS);
  CHECK(recorder.program.charged() == 40 * kMiB);
  CHECK(recorder.driver.calls("cuArrayGetMemoryRequirements") == 1);  // that was enough to learn it
}

TEST_CASE("a driver without the query has its arrays charged by the bound, and is asked nothing") {
  ArrayStudio recorder(Tells::kAll);
  driver::real.cuArrayGetMemoryRequirements.set(nullptr);
  CHECK(recorder.its().create(shape_of(60)) != kUntouched);
  CHECK(recorder.program.charged() == 60 * kMiB);
  CHECK(recorder.driver.calls("cuArray3DCreate_v2") == 1);
}

TEST_CASE("an array that cannot fit is refused as too large if the driver could make one of its extents") {
  ArrayStudio recorder(Tells::kDeferred);
  CHECK(recorder.its().create(shape_of(101)) == kUntouched);
  CHECK(recorder.its().last == CUDA_ERROR_OUT_OF_MEMORY);
  CHECK(recorder.program.charged() == 0);
  recorder.driver.fails["cuArray3DCreate_v2"] = CUDA_ERROR_INVALID_VALUE;
  CHECK(recorder.its().create(shape_of(102)) == kUntouched);
  CHECK(recorder.its().last == CUDA_ERROR_OUT_OF_MEMORY);  // whether the device maps arrays later is not known
  CUresult (*const yes)(int *, int, CUdevice) = [](int *value, int, CUdevice) {
    *value = 1;
    return CUDA_SUCCESS;
  };
  driver::real.cuDeviceGetAttribute.set(reinterpret_cast<void *>(yes));
  CHECK(recorder.its().create(shape_of(103)) == kUntouched);
  CHECK(recorder.its().last == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("a shape is asked for once, and each device for itself") {
  ArrayStudio recorder(Tells::kDeferred);
  recorder.arrays.needs = nine_tenths_of;
  for (int i = 0; i < 5; ++i) {
    const CUdeviceptr one = recorder.its().create(shape_of(10));
    CHECK(recorder.program.charged() == 9 * kMiB);
    CHECK(recorder.its().destroy(one) == CUDA_SUCCESS);
  }
  CHECK(recorder.driver.calls("cuArray3DCreate_v2") == 6);
  CHECK(recorder.driver.calls("cuArrayGetMemoryRequirements") == 2);  // and the first array's refusal
  recorder.program.create(1);
  recorder.arrays.needs = [](const CUDA_ARRAY3D_DESCRIPTOR &) { return 8 * kMiB; };
  CHECK(recorder.its().create(shape_of(10)) != kUntouched);
  CHECK(recorder.program.charged(1) == 8 * kMiB);
}

TEST_CASE("an array fits that needs no more than there is, also where its bound is more") {
  SECTION("and is the first one") {
    ArrayStudio recorder(Tells::kDeferred);
    recorder.arrays.needs = [](const CUDA_ARRAY3D_DESCRIPTOR &shape) { return shape.Width == 1 ? 1 : 99 * kMiB; };
    const policy::ArrayShape narrow{{40, 111 * kMiB / 64, 0, CU_AD_FORMAT_UNSIGNED_INT8, 1, 0}};
    CHECK(narrow.bound() == 111 * kMiB);
    CHECK(recorder.its().create(narrow) != kUntouched);
    CHECK(recorder.program.charged() == 99 * kMiB);
    CHECK(recorder.program.denied(events::Reason::limit) == 0);
  }
  SECTION("and another one came first") {
    ArrayStudio recorder(Tells::kDeferred);
    recorder.arrays.needs = nine_tenths_of;
    CHECK(recorder.its().create(shape_of(1)) != kUntouched);
    CHECK(recorder.its().create(shape_of(110)) != kUntouched);
    CHECK(recorder.arrays.most_at_once <= 100 * kMiB);
  }
  SECTION("but not where nothing is left to learn that with") {
    ArrayStudio recorder(Tells::kDeferred);
    CHECK(recorder.program.take(100 * kMiB) != kUntouched);
    CHECK(recorder.its().create(shape_of(1)) == kUntouched);
    CHECK(recorder.driver.calls("cuArray3DCreate_v2") == 0);
  }
}

TEST_CASE("a driver that tells of every array is never trusted to defer one") {
  ArrayStudio recorder(Tells::kAll);
  recorder.arrays.honours_deferral = false;
  recorder.arrays.needs = nine_tenths_of;
  CHECK(recorder.its().create(shape_of(111)) == kUntouched);
  CHECK(recorder.its().create(shape_of(60)) != kUntouched);
  CHECK(recorder.program.charged() == 54 * kMiB);
  CHECK(recorder.its().create(shape_of(50)) == kUntouched);
  CHECK(recorder.arrays.most_at_once <= 100 * kMiB);
  CHECK(recorder.program.charged() == recorder.driver.used(0));
}

TEST_CASE("an array that needs more than its bound is held to the limit all the same") {
  for (const Tells tells : {Tells::kDeferred, Tells::kAll}) {
    ArrayStudio recorder(tells);
    recorder.arrays.needs = [](const CUDA_ARRAY3D_DESCRIPTOR &shape) { return shape.Width * shape.Height * 3; };
    CHECK(recorder.its().create(shape_of(30)) != kUntouched);
    CHECK(recorder.program.charged() == 90 * kMiB);
    CHECK(recorder.its().create(shape_of(5)) == kUntouched);
    CHECK(recorder.its().last == CUDA_ERROR_OUT_OF_MEMORY);
    CHECK(recorder.program.charged() == 90 * kMiB);
    CHECK(recorder.program.charged() == recorder.driver.used(0));
  }
}

TEST_CASE("arrays whose memory is mapped later cost nothing, and nothing is asked of them") {
  ArrayStudio recorder(Tells::kDeferred);
  CHECK(recorder.its().create(shape_of(5000, CUDA_ARRAY3D_DEFERRED_MAPPING)) != kUntouched);
  CHECK(recorder.program.charged() == 0);
  CHECK(recorder.driver.calls("cuArrayGetMemoryRequirements") == 0);
  CHECK(recorder.driver.calls("cuArray3DCreate_v2") == 1);
}

TEST_CASE("mipmapped arrays are asked for by their own query") {
  ArrayStudio recorder(Tells::kDeferred);
  recorder.arrays.needs = nine_tenths_of;
  policy::ArrayCosts costs;
  const policy::Contexts::Current where = somewhere();
  policy::ArrayShape shape = shape_of(10);
  CUarray made = nullptr;
  REQUIRE(driver::real.cuArray3DCreate_v2(&made, &shape.descriptor) == CUDA_SUCCESS);
  CHECK(costs.of(where, shape, reinterpret_cast<CUdeviceptr>(made)) == 9 * kMiB);
  shape.mipmapped = true;
  shape.levels = 3;
  CHECK(costs.of(where, shape) == 9 * kMiB);
  CHECK(recorder.driver.calls("cuMipmappedArrayGetMemoryRequirements") == 1);
  shape.levels = 4;  // another shape
  CHECK(costs.of(where, shape) == 9 * kMiB);
  CHECK(costs.of(where, shape) == 9 * kMiB);
  CHECK(recorder.driver.calls("cuMipmappedArrayGetMemoryRequirements") == 2);
  CHECK(recorder.arrays.live() == 4);
  costs.destroy_queried(*somewhere().context);
  CHECK(recorder.arrays.live() == 4);
  CHECK(costs.keeps_any());
  costs.destroy_queried(*where.context);
  CHECK(recorder.arrays.live() == 1);
  CHECK_FALSE(costs.keeps_any());
}

TEST_CASE("a shape that cannot be deferred is charged its bound, and that is known for good unless memory was short") {
  ArrayStudio recorder(Tells::kDeferred);
  REQUIRE(recorder.its().create(shape_of(1)) != kUntouched);
  policy::ArrayCosts costs;
  const policy::Contexts::Current where = somewhere();
  CUarray made = nullptr;
  const policy::ArrayShape other = shape_of(2);
  REQUIRE(driver::real.cuArray3DCreate_v2(&made, &other.descriptor) == CUDA_SUCCESS);
  REQUIRE(costs.of(where, other, reinterpret_cast<CUdeviceptr>(made)).has_value());
  recorder.driver.fails["cuArray3DCreate_v2"] = CUDA_ERROR_OUT_OF_MEMORY;
  CHECK_FALSE(costs.of(where, shape_of(3)).has_value());
  recorder.driver.fails["cuArray3DCreate_v2"] = CUDA_ERROR_INVALID_VALUE;
  CHECK_FALSE(costs.of(where, shape_of(4)).has_value());
  recorder.driver.fails.clear();
  CHECK(costs.of(where, shape_of(3)) == 3 * kMiB);
  CHECK_FALSE(costs.of(where, shape_of(4)).has_value());
}

TEST_CASE("an array that was queried is destroyed just before one of the program's own, which waits for running work") {
  ArrayStudio recorder(Tells::kDeferred);
  const CUdeviceptr first = recorder.its().create(shape_of(10));
  const CUdeviceptr second = recorder.its().create(shape_of(20));
  REQUIRE(second != kUntouched);
  CHECK(recorder.driver.calls("cuArrayDestroy") == 0);
  CHECK(recorder.arrays.live() == 4);
  CHECK(recorder.its().destroy(0x77) != CUDA_SUCCESS);  // which does not wait
  CHECK(recorder.arrays.live() == 4);
  CHECK(recorder.its().destroy(first) == CUDA_SUCCESS);
  CHECK(recorder.arrays.live() == 1);
}

TEST_CASE("few arrays that were queried are kept, and none of a context that ended") {
  ArrayStudio recorder(Tells::kDeferred);
  policy::ArrayCosts costs;
  CUarray made = nullptr;
  const policy::ArrayShape one = shape_of(1);
  REQUIRE(driver::real.cuArray3DCreate_v2(&made, &one.descriptor) == CUDA_SUCCESS);
  const policy::Contexts::Current first = somewhere(), second = somewhere();
  REQUIRE(costs.of(first, one, reinterpret_cast<CUdeviceptr>(made)).has_value());
  const std::size_t shapes = 300;
  for (std::size_t i = 2; i <= shapes; ++i) {
    REQUIRE(costs.of(first, shape_of(i)).has_value());
  }
  const std::size_t kept = recorder.arrays.live() - 1;
  CHECK(kept < shapes);
  CHECK(recorder.driver.calls("cuArrayDestroy") == static_cast<int>(shapes - kept));
  first.context->ended_by = "cuCtxDestroy_v2";
  REQUIRE(costs.of(second, shape_of(shapes + 1)).has_value());
  CHECK(recorder.arrays.live() == 1 + kept + 1);  // the driver has destroyed the first context's, the fake has not
  costs.destroy_queried(*first.context);
  CHECK(recorder.arrays.live() == 1 + kept + 1);
  costs.destroy_queried(*second.context);
  CHECK(recorder.arrays.live() == 1 + kept);
}

TEST_CASE("without memory of the host an array is refused or right, and nothing is left over") {
  for (int left = 0; left < 60; ++left) {
    ArrayStudio recorder(Tells::kDeferred);
    recorder.arrays.needs = nine_tenths_of;
    REQUIRE(recorder.its().create(shape_of(10)) != kUntouched);
    CUdeviceptr made = kUntouched;
    allocations_left = left;
    try {
      made = recorder.its().create(shape_of(20));
    } catch (const std::bad_alloc &) {  // as the hooks' boundary does
    }
    allocations_left = -1;
    CHECK(recorder.program.charged() == (made == kUntouched ? 9 : 27) * kMiB);
    CHECK(recorder.driver.used(0) == recorder.program.charged());
    CHECK(recorder.its().create(shape_of(20)) != kUntouched);
    CHECK(recorder.driver.used(0) == recorder.program.charged());
  }
}
