// How much a pool takes when it grows for a request: a pure function of what is held, limited and free.
#include "pool/growth_size.h"

#include "catch.h"

using ration::pool::GrowthState;
using ration::pool::next_growth;

namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

// A request of so many bytes on a device without a limit.
GrowthState state_of(std::uint64_t minimum, std::uint64_t held) {
  GrowthState state;
  state.minimum = minimum;
  state.held = held;
  state.most = 80 * 1024 * kMiB;
  return state;
}

}  // namespace

TEST_CASE("slabs double: each is as large as all before it and a step") {
  CHECK(next_growth(state_of(kMiB / 2, 0)) == 2 * kMiB);
  CHECK(next_growth(state_of(kMiB / 2, 2 * kMiB)) == 4 * kMiB);
  CHECK(next_growth(state_of(kMiB / 2, 6 * kMiB)) == 8 * kMiB);
  CHECK(next_growth(state_of(9 * kMiB, 0)) == 10 * kMiB);
}

TEST_CASE("a slab is at most a sixteenth of a limit, but never less than the request") {
  GrowthState state = state_of(kMiB / 2, 64 * kMiB);
  state.limit = state.most = state.available = 160 * kMiB;
  CHECK(next_growth(state) == 10 * kMiB);
  state.minimum = 40 * kMiB;
  CHECK(next_growth(state) == 40 * kMiB);
  state.available = 0;
  CHECK(next_growth(state) == 40 * kMiB);
}

TEST_CASE("where few blocks of a size fit under the limit, a slab holds a whole number of them") {
  GrowthState state = state_of(3 * kMiB, 0);
  state.limit = state.most = state.available = 1000 * kMiB;
  CHECK(next_growth(state) == 3 * kMiB);
  state.held = 9 * kMiB;
  CHECK(next_growth(state) == 9 * kMiB);
}

TEST_CASE("in a group a slab takes at most an eighth of what is left") {
  GrowthState state = state_of(kMiB, 100 * kMiB);
  state.available = state.group_available = 64 * kMiB;
  CHECK(next_growth(state) == 8 * kMiB);
}

TEST_CASE("the headroom is left alone while the request fits, and then used for several blocks") {
  GrowthState state = state_of(kMiB, 30 * kMiB);
  state.free = 5 * kMiB;
  state.headroom = 2 * kMiB;
  CHECK(next_growth(state) == 3 * kMiB);
  state.headroom = 5 * kMiB;
  CHECK(next_growth(state) == 5 * kMiB);
}

TEST_CASE("before a preallocation slabs stay small, and the first granules as small as a block needs") {
  GrowthState state = state_of(kMiB, 200 * kMiB);
  state.owed_after = 32 * kMiB;
  CHECK(next_growth(state) == 32 * kMiB);
  state.granule_bytes = 8 * kMiB;
  state.held = 0;
  CHECK(next_growth(state) == 2 * kMiB);
}

TEST_CASE("a pool of granules grows by one of them, or by what the request lacks") {
  GrowthState state = state_of(2 * kMiB, 100 * kMiB);
  state.granule_bytes = 4 * kMiB;
  CHECK(next_growth(state) == 4 * kMiB);
  state.minimum = 6 * kMiB;
  CHECK(next_growth(state) == 6 * kMiB);
}
