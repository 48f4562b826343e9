// Random programs in pools of granules, on a device that checks its use.
#include "catch.h"
#include "pool_checks/granule_program.h"

using namespace ration::pool;

namespace {

struct Shape {
  std::uint64_t pages;
  std::uint64_t preallocated;
  std::uint64_t each;
};
constexpr Shape kShapes[] = {{24, 24, 1}, {24, 0, 1}, {32, 32, 4}, {40, 20, 8}, {64, 64, 3}};

}  // namespace

TEST_CASE("whatever a program does, each granule is in one place and all memory can be had again") {
  std::uint64_t stitched = 0;
  std::uint64_t revived = 0;
  std::uint64_t refused = 0;
  for (const Shape &shape : kShapes) {
    for (std::uint64_t seed = 0; seed < 30; ++seed) {
      CAPTURE(shape.pages, shape.preallocated, shape.each, seed);
      GranuleProgram program(seed, shape.pages);
      REQUIRE(program.open(shape.preallocated, shape.each));
      for (int step = 0; step < 600; ++step) {
        program.step();
        CAPTURE(step);
        REQUIRE(program.wrong() == "");
      }
      CHECK(program.fill() == "");
      stitched += program.pool.stitch_counts().stitched;
      revived += program.pool.stitch_counts().revived;
      refused += program.refused;
    }
  }
  // Without these the test would prove nothing.
  CHECK(stitched > 1000);
  CHECK(revived > 100);
  CHECK(refused > 100);
}
