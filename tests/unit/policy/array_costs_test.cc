// What arrays are charged: the driver's word where it gives one, the bound else.
#include "policy/array_costs.h"

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
    door.emplace(program);
  }
  FakeDriver driver;
  FakeArrays arrays;
  Program program;
  std::optional<ArrayProgram> door;
  ArrayProgram &its() { return door.value(); }
};

// Nine tenths of the bound.
std::uint64_t nine_tenths_of(const CUDA_ARRAY3D_DESCRIPTOR &shape) {
  return std::max<std::uint64_t>(1, shape.Width * shape.Height * 9 / 10);
}

}  // namespace

TEST_CASE("an array is charged what the driver tells of arrays of its shape, and gives it back once") {
  for (const Tells tells : {Tells::kDeferred, Tells::kAll}) {
    INFO("tells of " << (tells == Tells::kAll ? "all" : "deferred ones"));
    ArrayStudio studio(tells);
    studio.arrays.needs = nine_tenths_of;
    const CUdeviceptr first = studio.its().create(shape_of(40));
    CHECK(studio.program.charged() == 36 * kMiB);
    CHECK(studio.its().create(shape_of(40)) != kUntouched);
    CHECK(studio.program.charged() == 72 * kMiB);
    CHECK(studio.its().create(shape_of(40)) == kUntouched);
    CHECK(studio.its().last == CUDA_ERROR_OUT_OF_MEMORY);
    CHECK(studio.program.denied(events::Reason::limit) == 1);
    CHECK(studio.program.charged() == studio.driver.used(0));
    CHECK(studio.its().destroy(first) == CUDA_SUCCESS);
    CHECK(studio.its().destroy(first) != CUDA_SUCCESS);
    CHECK(studio.program.charged() == studio.driver.used(0));
    CHECK(studio.arrays.live() == 1);  // and none of ours
    CHECK(studio.arrays.most_at_once <= 100 * kMiB);
  }
}

TEST_CASE("where the driver tells nothing an array is charged its bound") {
  ArrayStudio studio(Tells::kNothing);
  studio.arrays.needs = nine_tenths_of;
  const CUdeviceptr first = studio.its().create(shape_of(60));
  CHECK(studio.program.charged() == 60 * kMiB);
  CHECK(studio.its().create(shape_of(41)) == kUntouched);  // although the driver would have room in the limit
  CHECK(studio.its().create(shape_of(40)) != kUntouched);
  CHECK(studio.program.charged() == 100 * kMiB);
  CHECK(studio.its().destroy(first) == CUDA_SUCCESS);
  CHECK(studio.program.charged() == 40 * kMiB);
  CHECK(studio.driver.calls("cuArrayGetMemoryRequirements") == 1);  // that was enough to learn it
}

TEST_CASE("a driver without the query has its arrays charged by the bound, and is asked nothing") {
  ArrayStudio studio(Tells::kAll);
  driver::real.cuArrayGetMemoryRequirements.set(nullptr);
  CHECK(studio.its().create(shape_of(60)) != kUntouched);
  CHECK(studio.program.charged() == 60 * kMiB);
  CHECK(studio.driver.calls("cuArray3DCreate_v2") == 1);
}

TEST_CASE("a shape is asked for once, and each device for itself") {
  ArrayStudio studio(Tells::kDeferred);
  studio.arrays.needs = nine_tenths_of;
  for (int i = 0; i < 5; ++i) {
    const CUdeviceptr one = studio.its().create(shape_of(10));
    CHECK(studio.program.charged() == 9 * kMiB);
    CHECK(studio.its().destroy(one) == CUDA_SUCCESS);
  }
  CHECK(studio.driver.calls("cuArray3DCreate_v2") == 6);
  CHECK(studio.driver.calls("cuArrayGetMemoryRequirements") == 2);  // and the first array's refusal
  studio.program.create(1);
  studio.arrays.needs = [](const CUDA_ARRAY3D_DESCRIPTOR &) { return 8 * kMiB; };
  CHECK(studio.its().create(shape_of(10)) != kUntouched);
  CHECK(studio.program.charged(1) == 8 * kMiB);
}

TEST_CASE("an array fits that needs no more than there is, also where its bound is more") {
  SECTION("and is the first one") {
    ArrayStudio studio(Tells::kDeferred);
    studio.arrays.needs = nine_tenths_of;
    CHECK(studio.its().create(shape_of(111)) != kUntouched);
    CHECK(studio.program.charged() == 111 * kMiB * 9 / 10);
    CHECK(studio.program.denied(events::Reason::limit) == 0);
    CHECK(studio.arrays.live() == 1);
  }
  SECTION("and another one came first") {
    ArrayStudio studio(Tells::kDeferred);
    studio.arrays.needs = nine_tenths_of;
    CHECK(studio.its().create(shape_of(1)) != kUntouched);
    CHECK(studio.its().create(shape_of(110)) != kUntouched);
    CHECK(studio.arrays.most_at_once <= 100 * kMiB);
  }
  SECTION("but not where nothing is left to learn that with") {
    ArrayStudio studio(Tells::kDeferred);
    CHECK(studio.program.take(100 * kMiB) != kUntouched);
    CHECK(studio.its().create(shape_of(1)) == kUntouched);
    CHECK(studio.driver.calls("cuArray3DCreate_v2") == 0);
  }
}

TEST_CASE("a driver that tells of every array is never trusted to defer one") {
  ArrayStudio studio(Tells::kAll);
  studio.arrays.honours_deferral = false;
  studio.arrays.needs = nine_tenths_of;
  CHECK(studio.its().create(shape_of(111)) == kUntouched);
  CHECK(studio.its().create(shape_of(60)) != kUntouched);
  CHECK(studio.program.charged() == 54 * kMiB);
  CHECK(studio.its().create(shape_of(50)) == kUntouched);
  CHECK(studio.arrays.most_at_once <= 100 * kMiB);
  CHECK(studio.program.charged() == studio.driver.used(0));
}

TEST_CASE("an array that needs more than its bound is held to the limit all the same") {
  for (const Tells tells : {Tells::kDeferred, Tells::kAll}) {
    ArrayStudio studio(tells);
    studio.arrays.needs = [](const CUDA_ARRAY3D_DESCRIPTOR &shape) { return shape.Width * shape.Height * 3; };
    CHECK(studio.its().create(shape_of(30)) != kUntouched);
    CHECK(studio.program.charged() == 90 * kMiB);
    CHECK(studio.its().create(shape_of(5)) == kUntouched);
    CHECK(studio.its().last == CUDA_ERROR_OUT_OF_MEMORY);
    CHECK(studio.program.charged() == 90 * kMiB);
    CHECK(studio.program.charged() == studio.driver.used(0));
    CHECK(studio.arrays.live() == 1);
  }
}

TEST_CASE("arrays whose memory is mapped later cost nothing, and nothing is asked of them") {
  ArrayStudio studio(Tells::kDeferred);
  CHECK(studio.its().create(shape_of(5000, CUDA_ARRAY3D_DEFERRED_MAPPING)) != kUntouched);
  CHECK(studio.program.charged() == 0);
  CHECK(studio.driver.calls("cuArrayGetMemoryRequirements") == 0);
  CHECK(studio.driver.calls("cuArray3DCreate_v2") == 1);
}

TEST_CASE("mipmapped arrays are asked for by their own query") {
  ArrayStudio studio(Tells::kDeferred);
  studio.arrays.needs = nine_tenths_of;
  policy::ArrayCosts costs;
  policy::ArrayShape shape = shape_of(10);
  CUarray made = nullptr;
  REQUIRE(driver::real.cuArray3DCreate_v2(&made, &shape.descriptor) == CUDA_SUCCESS);
  CHECK(costs.of(0, shape, reinterpret_cast<CUdeviceptr>(made)) == 9 * kMiB);
  shape.mipmapped = true;
  shape.levels = 3;
  CHECK(costs.of(0, shape) == 9 * kMiB);
  CHECK(studio.driver.calls("cuMipmappedArrayGetMemoryRequirements") == 1);
  shape.levels = 4;  // another shape
  CHECK(costs.of(0, shape) == 9 * kMiB);
  CHECK(costs.of(0, shape) == 9 * kMiB);
  CHECK(studio.driver.calls("cuMipmappedArrayGetMemoryRequirements") == 2);
  CHECK(studio.arrays.live() == 1);
}

TEST_CASE("a shape that cannot be deferred is charged its bound, and that is known for good unless memory was short") {
  ArrayStudio studio(Tells::kDeferred);
  REQUIRE(studio.its().create(shape_of(1)) != kUntouched);
  policy::ArrayCosts costs;
  CUarray made = nullptr;
  const policy::ArrayShape other = shape_of(2);
  REQUIRE(driver::real.cuArray3DCreate_v2(&made, &other.descriptor) == CUDA_SUCCESS);
  REQUIRE(costs.of(0, other, reinterpret_cast<CUdeviceptr>(made)).has_value());
  studio.driver.fails["cuArray3DCreate_v2"] = CUDA_ERROR_OUT_OF_MEMORY;
  CHECK_FALSE(costs.of(0, shape_of(3)).has_value());
  studio.driver.fails["cuArray3DCreate_v2"] = CUDA_ERROR_INVALID_VALUE;
  CHECK_FALSE(costs.of(0, shape_of(4)).has_value());
  studio.driver.fails.clear();
  CHECK(costs.of(0, shape_of(3)) == 3 * kMiB);
  CHECK_FALSE(costs.of(0, shape_of(4)).has_value());
}

TEST_CASE("without memory of the host an array is refused or right, and nothing is left over") {
  for (int left = 0; left < 60; ++left) {
    ArrayStudio studio(Tells::kDeferred);
    studio.arrays.needs = nine_tenths_of;
    REQUIRE(studio.its().create(shape_of(10)) != kUntouched);
    CUdeviceptr made = kUntouched;
    allocations_left = left;
    try {
      made = studio.its().create(shape_of(20));
    } catch (const std::bad_alloc &) {  // as the hooks' boundary does
    }
    allocations_left = -1;
    CHECK(studio.program.charged() == (made == kUntouched ? 9 : 27) * kMiB);
    CHECK(studio.driver.used(0) == studio.program.charged());
    CHECK(studio.its().create(shape_of(20)) != kUntouched);
    CHECK(studio.driver.used(0) == studio.program.charged());
  }
}
