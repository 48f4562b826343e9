// Random commands against the pool and a trivially correct model; checks the invariants after every step.
#include "catch.h"
#include "flawed_pool.h"
#include "gen_commands.h"
#include "pool_player.h"

using namespace ration::pool;
using enum Command::Kind;

namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

// Sizes of every order of magnitude, many equal ones, and a few that no pool can serve.
rc::Gen<std::uint64_t> any_size() {
  return rc::gen::weightedOneOf<std::uint64_t>(
      {{4, gen_of_order(33)},
       {4, rc::gen::element<std::uint64_t>(512, 4096, 65536, kMiB, 33 * kMiB)},
       {6, rc::gen::inRange<std::uint64_t>(0, 20'000)},
       {1, rc::gen::element<std::uint64_t>(0, 1, ~std::uint64_t{0}, kMaximumBytes)}});
}

Weights weights(std::size_t frees) {
  return {{60, kAllocate},
          {frees / 3, kFree},
          {frees * 2 / 3, kRetire},
          {frees * 3 / 5, kReclaim},
          {3, kFreeAnything},
          {3, kRetireAnything},
          {3, kReclaimAnything},
          {2, kListLive},
          {5, kFindAnything},
          {1, kAddSlab},
          {1, kAddSlabBeside},
          {1, kRemoveSlab},
          {1, kAllocateLargest},
          {1, kListSlabs},
          {1, kFreeSlab}};
}

// Plays each command against the pool and the model. The first error, or an empty string.
template <class AnyPool>
std::string run(AnyPool &pool, std::vector<Command> commands, std::uint64_t slab_bytes) {
  PoolModel model;
  PoolPlayer player(pool, model);
  commands.insert(commands.begin(), {kAddSlab, slab_bytes});
  const std::string wrong = player.play(commands);
  return wrong.empty() ? player.finish() : wrong;
}

bool holds(const rc::Gen<std::vector<Command>> &commands, std::uint64_t slab_bytes = 2048 * kMiB) {
  return rc::check("the pool answers as the model does", [&] {
    Pool pool;
    const std::string wrong = run(pool, *commands, slab_bytes);
    if (!wrong.empty()) RC_FAIL(wrong);
  });
}

bool holds(std::size_t frees, int most_commands) {
  return holds(gen_commands(most_commands, weights(frees), any_size(), rc::gen::inRange<std::uint64_t>(0, kMiB)));
}

}  // namespace

TEST_CASE("a pool that mostly fills answers as the model does") {
  CHECK(holds(20, 5000));
}

TEST_CASE("a pool that stays nearly full answers as the model does") {
  CHECK(holds(55, 3000));
}

TEST_CASE("a pool that is emptied repeatedly answers as the model does") {
  CHECK(holds(90, 600));
}

TEST_CASE("a pool of the largest slabs answers as the model does") {
  const auto size = rc::gen::weightedOneOf<std::uint64_t>(
      {{8, gen_of_order(49)},
       {1, rc::gen::element<std::uint64_t>(kMaximumBytes - 1, kMaximumBytes, kMaximumBytes - 512, kMaximumBytes + 1,
                                           kMaximumBytes / 2, ~std::uint64_t{0}, ~std::uint64_t{510})}});
  Weights often_slabs = weights(55);
  often_slabs.insert(often_slabs.end(), {{5, kAddSlab}, {5, kAddSlabBeside}, {5, kRemoveSlab}});
  CHECK(holds(gen_commands(2000, often_slabs, size, size), kMaximumBytes));
}

TEST_CASE("a pool with repeated requests for its largest hole answers as the model does") {
  Weights often_largest = weights(80);
  often_largest.insert(often_largest.end(), {{20, kAllocateLargest}});
  const auto size = rc::gen::weightedOneOf<std::uint64_t>({{3, gen_of_order(28)}, {1, gen_of_order(12)}});
  CHECK(holds(gen_commands(2500, often_largest, size, gen_of_order(29)), 256 * kMiB));
}

TEST_CASE("a pool of few granules answers as the model does") {
  const auto size = rc::gen::inRange<std::uint64_t>(0, 5 * 512);
  CHECK(holds(gen_commands(4000, weights(60), size, rc::gen::inRange<std::uint64_t>(0, 8000)), 100 * 512));
}

TEST_CASE("a pool answers as the model does over a long life", "[.long]") {
  CHECK(holds(50, 30'000));
}

TEST_CASE("the model detects every flaw") {
  for (int flaw = 0; flaw <= static_cast<int>(kLastFlaw); ++flaw) {
    CAPTURE(flaw);
    // Enough of every command for each flaw to show. Not random: this is a test of the model.
    const Command::Kind others[] = {kFree,      kFreeAnything,   kRetire,          kFindAnything,
                                    kRetire,    kRetireAnything, kReclaimAnything, kFindAnything,
                                    kListLive,  kReclaim,        kAddSlab,         kAddSlabBeside,
                                    kListSlabs, kFreeSlab,       kRemoveSlab,      kAllocateLargest};
    std::vector<Command> commands;
    for (std::uint64_t step = 0; step < 2000; ++step) {
      const Command::Kind kind = step % 3 != 0 ? kAllocate : others[step / 3 % std::size(others)];
      commands.push_back({kind, 512 + (step * 2654435761U >> 7) % 50'000});
    }
    Pool sound;
    REQUIRE(run(sound, commands, 2048 * kMiB) == "");
    FlawedPool broken(static_cast<Flaw>(flaw));
    CHECK(run(broken, commands, 2048 * kMiB) != "");
  }
}
