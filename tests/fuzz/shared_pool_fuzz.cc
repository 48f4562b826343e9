// Random commands against a pool that grows within a budget, gives slabs back and reclaims clean blocks, and against
// the trivially correct model; checks the invariants after every step.
#include "backed_pool.h"
#include "catch.h"
#include "gen_commands.h"
#include "pool_player.h"

using namespace ration::pool;
using enum Command::Kind;

namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

bool holds(std::uint64_t budget, const rc::Gen<std::uint64_t> &size) {
  const Weights weights = {
      {60, kAllocate},       {8, kFree},         {40, kRetire},        {3, kReclaim},      {1, kGiveBack},
      {4, kBecomeClean},     {1, kFreeAnything}, {1, kRetireAnything}, {1, kFindAnything}, {1, kReclaimAnything},
      {1, kAllocateLargest}, {1, kListLive},     {1, kListSlabs},      {1, kAddSlab},      {1, kAddSlabBeside}};
  const auto commands = gen_commands(4000, weights, size, rc::gen::inRange<std::uint64_t>(0, kMiB));
  return rc::check("no request is refused while memory is available", [&] {
    PoolModel model;
    BackedPool pool(model, budget);
    PoolPlayer player(pool, model);
    std::string wrong = player.play(*commands);
    if (wrong.empty()) wrong = player.finish();
    if (!wrong.empty()) RC_FAIL(wrong);
  });
}

}  // namespace

TEST_CASE("a pool that grows, gives back and reclaims answers as the model does") {
  CHECK(holds(128 * kMiB, rc::gen::weightedOneOf<std::uint64_t>(
                              {{8, rc::gen::inRange<std::uint64_t>(0, kMiB)},
                               {4, rc::gen::element<std::uint64_t>(512, 65536, 2 * kMiB, 33 * kMiB, 40 * kMiB)},
                               {1, rc::gen::element<std::uint64_t>(200 * kMiB, ~std::uint64_t{0}, kMaximumBytes,
                                                                   SharedPool::kMostBytes)}})));
}

TEST_CASE("a pool that grows by the largest slabs answers as the model does") {
  CHECK(holds(4 * kMaximumBytes,
              rc::gen::weightedOneOf<std::uint64_t>(
                  {{8, gen_of_order(49)},
                   {1, rc::gen::element<std::uint64_t>(SharedPool::kMostBytes + 1, SharedPool::kMostBytes)}})));
}
