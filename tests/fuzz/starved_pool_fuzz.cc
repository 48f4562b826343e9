// Random commands against pools whose host memory runs out in the middle of any command. Calls that need none succeed,
// others report the failure and change nothing, and succeed once there is memory again.
#include "backed_pool.h"
#include "catch.h"
#include "gen_commands.h"
#include "host_memory.h"
#include "pool_player.h"

using namespace ration::pool;
using enum Command::Kind;

namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

// Failures for want of host memory by call; a test without any would prove nothing.
struct Refused {
  std::uint64_t allocations = 0;
  std::uint64_t slabs = 0;
  std::uint64_t reserves = 0;
};

// The largest hole known may rise: a call that runs out of host memory may have indexed some of the holes that earlier
// frees could not index.
bool same(const Statistics &before, const Statistics &after) {
  return before.slab_bytes == after.slab_bytes && before.used_bytes == after.used_bytes &&
         before.retired_bytes == after.retired_bytes && before.free_bytes == after.free_bytes &&
         before.largest_hole <= after.largest_hole && before.blocks == after.blocks &&
         before.retired_blocks == after.retired_blocks && before.holes == after.holes && before.slabs == after.slabs;
}

// Calls Inner with host memory for a few requests. Where that fails, repeats the call with plenty.
template <class Inner>
class Starved {
 public:
  Starved(Inner &inner, std::uint64_t seed, Refused &refused) : inner_(inner), random_(seed), refused_(refused) {}

  AllocateOutcome allocate(std::uint64_t bytes) {
    const auto failed = [](const AllocateOutcome &it) { return it.kind == AllocateOutcome::Kind::kNoHostMemory; };
    return twice([&] { return inner_.allocate(bytes); }, failed, refused_.allocations);
  }
  AddSlabOutcome add_slab(const Slab &slab) {
    const auto failed = [](AddSlabOutcome it) { return it == AddSlabOutcome::kNoHostMemory; };
    return twice([&] { return inner_.add_slab(slab); }, failed, refused_.slabs);
  }
  bool reserve(std::size_t blocks) {
    return twice([&] { return inner_.reserve(blocks); }, [](bool it) { return !it; }, refused_.reserves);
  }

  // These need no host memory.
  FreeOutcome free(Address address) {
    const host_memory::Limit none(0);
    return inner_.free(address);
  }
  FreeOutcome reclaim(Address address) {
    const host_memory::Limit none(0);
    return inner_.reclaim(address);
  }
  FreeOutcome retire(Address address) {
    const host_memory::Limit none(0);
    return inner_.retire(address);
  }
  bool remove_slab(std::uint64_t id) requires requires(Inner &inner) { inner.remove_slab(id); }
  {
    const host_memory::Limit none(0);
    return inner_.remove_slab(id);
  }
  [[nodiscard]] std::optional<Slab> wholly_free_slab() const requires requires(Inner &inner) {
    inner.wholly_free_slab();
  }
  { return inner_.wholly_free_slab(); }
  std::string give_back() requires requires(Inner &inner) { inner.give_back(); }
  { return inner_.give_back(); }
  std::string become_clean(std::size_t blocks) requires requires(Inner &inner) { inner.become_clean(blocks); }
  { return inner_.become_clean(blocks); }
  [[nodiscard]] std::optional<Block> find(Address address) const { return inner_.find(address); }
  [[nodiscard]] std::optional<Slab> slab_of(Address address) const { return inner_.slab_of(address); }
  std::size_t live_blocks(Address from, Block *blocks, std::size_t count) const {
    return inner_.live_blocks(from, blocks, count);
  }
  std::size_t slabs(Address from, Slab *slabs, std::size_t count) const { return inner_.slabs(from, slabs, count); }
  // Holes freed without host memory may be unindexed until the next allocation: here one that never fits.
  [[nodiscard]] Statistics statistics() {
    (void)inner_.allocate(kMaximumBytes);
    return inner_.statistics();
  }
  [[nodiscard]] std::string check_invariants() const { return wrong_.empty() ? inner_.check_invariants() : wrong_; }

 private:
  template <class Call, class Failed>
  auto twice(const Call &call, const Failed &failed, std::uint64_t &count) {
    const Statistics before = inner_.statistics();
    const std::uint64_t refused_before = host_memory::refused;
    {
      const host_memory::Limit few((random_ = random_ * 6364136223846793005U + 1) >> 62);  // 0 to 3
      const auto outcome = call();
      if (!failed(outcome)) return outcome;
    }
    ++count;
    if (host_memory::refused == refused_before) wrong_ = "had no host memory although there was some";
    if (std::is_same_v<Inner, Pool> && !same(before, inner_.statistics())) wrong_ = "changed without host memory";
    if (std::string wrong = inner_.check_invariants(); !wrong.empty()) wrong_ = wrong;
    return call();
  }

  Inner &inner_;
  std::uint64_t random_;
  Refused &refused_;
  std::string wrong_;
};

rc::Gen<std::vector<Command>> any_commands(std::size_t reserves) {
  const Weights weights = {{60, kAllocate},       {12, kFree},    {14, kRetire},    {10, kReclaim},
                           {1, kFreeAnything},    {2, kAddSlab},  {1, kRemoveSlab}, {reserves, kReserve},
                           {1, kAllocateLargest}, {1, kGiveBack}, {2, kBecomeClean}};
  // Also sizes whose holes are in the size bins.
  const auto size = rc::gen::weightedOneOf<std::uint64_t>({{3, gen_of_order(12)}, {1, gen_of_order(29)}});
  return gen_commands(2000, weights, size, gen_of_order(32));
}

template <class Inner>
bool plays(Inner &inner, PoolModel &model, Refused &refused, std::size_t reserves = 0) {
  Starved<Inner> pool(inner, *rc::gen::arbitrary<std::uint64_t>(), refused);
  PoolPlayer player(pool, model);
  std::string wrong = player.play(Command{kAddSlab, 4096 * kMiB});
  if (wrong.empty()) wrong = player.play(*any_commands(reserves));
  if (wrong.empty()) wrong = player.finish();
  if (!wrong.empty()) RC_FAIL(wrong);
  return true;
}

}  // namespace

TEST_CASE("a pool without host memory reports it, changes nothing, and recovers") {
  Refused refused;
  CHECK(rc::check("starved pool", [&] {
    PoolModel model;
    Pool pool;
    return plays(pool, model, refused);
  }));
  CHECK(refused.allocations > 0);
  CHECK(refused.slabs > 0);
}

TEST_CASE("a failed reserve is reported and changes nothing") {
  Refused refused;
  CHECK(rc::check("starved pool that reserves", [&] {
    PoolModel model;
    Pool pool;
    return plays(pool, model, refused, 2);
  }));
  CHECK(refused.reserves > 0);
}

TEST_CASE("a pool that grows without host memory loses no slab") {
  Refused refused;
  CHECK(rc::check("starved pool with an upstream", [&] {
    PoolModel model;
    BackedPool pool(model, 8192 * kMiB);
    return plays(pool, model, refused);
  }));
  CHECK(refused.allocations > 0);
}
