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

TEST_CASE("whatever a program does, each granule is in one place and all memory can be had again", "[alone]") {
  std::uint64_t stitched = 0;
  std::uint64_t revived = 0;
  std::uint64_t refused = 0;
  for (const Shape &shape : kShapes) {
    for (std::uint64_t seed = 0; seed < 10; ++seed) {
      CAPTURE(shape.pages, shape.preallocated, shape.each, seed);
      GranuleProgram program(shape.pages);
      RandomSteps steps(program, seed, shape.pages);
      REQUIRE(program.open(shape.preallocated, shape.each));
      for (int step = 0; step < 600; ++step) {
        steps.step();
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
  CHECK(stitched > 500);
  CHECK(revived > 100);
  CHECK(refused > 100);
}

namespace {

// Plays the program of a seed while the device refuses `count` calls, from one on that is counted from the start of the
// program. Whether any was refused; `wrong`: the first error.
bool plays_refused(std::uint64_t seed, const Shape &shape, std::uint64_t after, std::uint64_t count,
                   std::string &wrong) {
  GranuleProgram program(shape.pages);
  RandomSteps steps(program, seed, shape.pages);
  if (!program.open(shape.preallocated, shape.each)) wrong = "was not opened";
  program.device.refuse(after, count);
  for (int step = 0; step < 120 && wrong.empty(); ++step) {
    steps.step();
    wrong = program.wrong();
  }
  const bool refused = program.device.refused() != 0;
  program.device.refuse(0, 0);
  if (wrong.empty()) wrong = program.fill();
  return refused;
}

// A sanitizer takes ten times as long.
#if defined(RATION_SANITIZED)
constexpr std::uint64_t kCoarser = 4;
#else
constexpr std::uint64_t kCoarser = 1;
#endif

// Refuses `count` calls at every `stride`-th call of a program.
void check_refusals(std::uint64_t count, std::uint64_t stride) {
  for (std::uint64_t seed = 0; const Shape &shape : kShapes) {
    ++seed;
    std::uint64_t after = 0;
    for (std::string wrong; plays_refused(seed, shape, after, count, wrong); after += stride * kCoarser) {
      CAPTURE(shape.pages, shape.preallocated, shape.each, seed, after, count);
      REQUIRE(wrong == "");
    }
    CHECK(after > 30);
  }
}

}  // namespace

TEST_CASE("where the device refuses any one call, the books are right and all memory can be had again", "[alone]") {
  check_refusals(1, 1);
}

TEST_CASE("where the device refuses several calls on end, the books are right and all memory can be had again",
          "[alone]") {
  check_refusals(2, 3);
  check_refusals(3, 7);
  check_refusals(20, 11);
}
