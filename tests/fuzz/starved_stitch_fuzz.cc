// Programs in pools of granules whose host memory runs out at any request for some: the pool refuses what needs it,
// keeps its records right, and serves all its memory again once the host has some.
#include <iterator>
#include <random>

#include "catch.h"
#include "pool_checks/granule_program.h"

using namespace ration::pool;

namespace {

struct Shape {
  std::uint64_t pages;
  std::uint64_t preallocated;
  std::uint64_t each;
};
constexpr Shape kShapes[] = {{24, 24, 1}, {24, 0, 1}, {32, 32, 4}, {64, 64, 3}};

// The host refuses the request `after` so many, and each after `again` more. Whether it refused any.
bool plays_starved(std::uint64_t seed, const Shape &shape, std::uint64_t after, std::uint64_t again,
                   std::string &wrong) {
  GranuleProgram program(shape.pages);
  RandomSteps steps(program, seed, shape.pages);
  if (!program.open(shape.preallocated, shape.each)) wrong = "was not opened";
  const std::uint64_t before = host_memory::refused;
  program.starve(after);
  for (std::uint64_t step = 0, seen = before; step < 120 && wrong.empty(); ++step) {
    steps.step();
    wrong = program.wrong();
    if (again == 0 || host_memory::refused == seen) continue;
    seen = host_memory::refused;
    program.starve(again);
  }
  program.starve(host_memory::kPlenty);
  const bool refused = host_memory::refused != before;
  if (wrong.empty()) wrong = program.fill();
  return refused;
}

}  // namespace

TEST_CASE("where the host refuses any one request, a pool of granules keeps its books and all its memory") {
  for (std::uint64_t seed = 0; const Shape &shape : kShapes) {
    ++seed;
    std::uint64_t after = 0;
    for (std::string wrong; plays_starved(seed, shape, after, 0, wrong); ++after) {
      CAPTURE(shape.pages, shape.preallocated, shape.each, seed, after);
      REQUIRE(wrong == "");
    }
    CHECK(after > 100);
  }
}

TEST_CASE("where the host refuses requests again and again, a pool of granules keeps its books and all its memory") {
  for (const Shape &shape : kShapes) {
    for (std::uint64_t again = 1; again <= 40; ++again) {
      CAPTURE(shape.pages, shape.preallocated, shape.each, again);
      std::string wrong;
      CHECK(plays_starved(again, shape, 0, again, wrong));
      REQUIRE(wrong == "");
    }
  }
}

TEST_CASE("where the host and the device refuse at random, a pool of granules keeps its books and all its memory") {
  for (std::uint64_t seed = 0; seed < 160; ++seed) {
    const Shape &shape = kShapes[seed % std::size(kShapes)];
    CAPTURE(shape.pages, shape.preallocated, shape.each, seed);
    std::mt19937_64 random(seed);
    GranuleProgram program(shape.pages);
    RandomSteps steps(program, seed, shape.pages);
    REQUIRE(program.open(shape.preallocated, shape.each));
    for (int step = 0; step < 250; ++step) {
      if (random() % 4 == 0) program.starve(random() % 40);
      if (random() % 6 == 0) program.device.refuse(random() % 20, 1 + random() % 4);
      if (random() % 50 == 0) program.device.provide(random() % 2 == 0);
      steps.step();
      REQUIRE(program.wrong() == "");
    }
    program.starve(host_memory::kPlenty);
    program.device.refuse(0, 0);
    program.device.provide(true);
    REQUIRE(program.fill() == "");
  }
}

TEST_CASE("a pool that was not made of granules for want of host memory is made of them later") {
  for (std::uint64_t after = 0;; ++after) {
    CAPTURE(after);
    GranuleProgram program(8);
    bool opened = false;
    {
      const host_memory::Limit few(after);
      opened = program.pool.stitch_from(program.device.layout());
    }
    if (opened) break;
    CHECK_FALSE(program.pool.stitches());
    REQUIRE(program.open(8, 1));
    CHECK(program.fill() == "");
  }
}

TEST_CASE("a granule that is given for want of host memory without a place is the pool's, or is not taken") {
  for (std::uint64_t after = 0; after < 30; ++after) {
    CAPTURE(after);
    GranuleProgram program(8);
    REQUIRE(program.open(4, 2));
    const std::optional<std::uint64_t> handle = program.device.create(4 * CheckedDevice::kPage);
    REQUIRE(handle);
    bool given = false;
    {
      const host_memory::Limit few(after);
      given = program.pool.add_granule(*handle, 4 * CheckedDevice::kPage, program.device);
    }
    if (!given) program.device.release(*handle, 4 * CheckedDevice::kPage);
    CHECK(program.wrong() == "");
    CHECK(program.fill() == "");
  }
}
