// Programs of known shapes fit into bounded arenas, on other seeds than the placement policy was tuned on. One replay
// each in the arena of its bound; tests/shapes/bench_placement finds the smallest arenas.
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "catch.h"
#include "shapes/shapes.h"
#include "tests/bench/pool_replay/replay.h"

using namespace ration::pool::replay;

namespace {

void require_fits(const char *shape, double ratio, std::initializer_list<std::uint64_t> seeds) {
  for (const std::uint64_t seed : seeds) {
    const Trace trace = ration::shapes::find(shape)->generate(seed, 1);
    const auto arena_bytes = static_cast<std::uint64_t>(ratio * static_cast<double>(trace.peak_bytes));
    const std::optional<Stop> stop = replay(trace, arena_bytes);
    INFO(shape << " seed " << seed << ", " << ratio << " of the peak");
    if (stop) FAIL("stopped at operation " << stop->operation << ", a request of " << stop->bytes << " bytes");
  }
}

// The allocated sizes, in order.
std::vector<std::uint64_t> allocated(const Trace &trace) {
  std::vector<std::uint64_t> sizes;
  for (const Operation &operation : trace.operations) {
    if (!operation.is_free) sizes.push_back(operation.bytes);
  }
  return sizes;
}

}  // namespace

TEST_CASE("training fits into 1.0085 of its peak with any batches") {
  require_fits("train", 1.0085, {101, 102, 103, 104, 105, 106});
}

TEST_CASE("serving fits into 1.025 of its peak with any requests", "[alone]") {
  require_fits("serve", 1.025,
               {15, 29, 54, 63, 101, 102, 103, 104, 109, 112, 113, 116, 119, 123, 147, 162, 211, 216, 261, 296});
}

TEST_CASE("a thousand blocks of random sizes fit into 1.15 of their peak", "[alone]") {
  require_fits("steady1k", 1.15, {101, 102, 103, 104});
}

TEST_CASE("ten thousand blocks of random sizes fit into 1.10 of their peak", "[alone]") {
  require_fits("steady10k", 1.10, {101, 102, 103});
}

TEST_CASE("experts fit into 1.01 of their peak, sampled images into 1.02, ray tracing into 1.11") {
  require_fits("experts", 1.01, {101, 102});
  require_fits("diffusion", 1.02, {101, 102});
  require_fits("rays", 1.11, {101, 102});
}

TEST_CASE("the same seed gives the same trace of a shape, another seed another one") {
  std::size_t covered = 0;
  for (const ration::shapes::Shape &shape : ration::shapes::all()) {
    INFO(std::string(shape.name));
    const Trace one = shape.generate(1, 0.05);
    const Trace same = shape.generate(1, 0.05);
    const Trace other = shape.generate(2, 0.05);
    CHECK((allocated(one) == allocated(same)));
    CHECK((allocated(one) != allocated(other)));
    ++covered;
  }
  WARN("covered: " << covered << " of " << ration::shapes::all().size());
}
