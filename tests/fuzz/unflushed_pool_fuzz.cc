// Pools whose cached hole stays unflushed for long: stack-like programs on several slabs, without queries of sums, with
// host memory that runs out in between.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "catch.h"
#include "host_memory.h"
#include "pool/pool.h"
#include "pool_model.h"

using namespace ration::pool;

namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

class Stacks {
 public:
  Stacks(std::uint64_t seed, bool starves) : random_(seed), starves_(starves) {}

  std::string run(std::uint64_t slab_bytes, std::uint64_t most, int steps) {
    for (int slab = 0; slab < 3; ++slab) add_slab(slab_bytes);
    for (int step = 0; step < steps && wrong_.empty(); ++step) {
      if (below(7) == 0) sizes_[below(4)] = size(most);
      switch (below(24)) {
        case 0:
          note(pool_.check_invariants());
          break;
        case 1:
          allocate(slab_bytes);  // rarely fits
          break;
        case 2:
          add_slab(slab_bytes / 2 + below(700));
          break;
        case 3:
        case 4:
          remove_slab();
          break;
        case 5:
          retire();
          break;
        case 6:
          while (!retired_.empty() && below(8) != 0) reclaim();
          break;
        case 7:
          for (std::uint64_t left = below(2) == 0 ? live_.size() : 0; left > 0; --left) free(live_.size() - 1);
          break;
        case 8:
          for (std::uint64_t times = below(60); times > 0; --times) free(below(live_.size() + 1));
          break;
        default:
          rise_and_fall();
      }
    }
    if (wrong_.empty()) note(pool_.check_invariants());
    (void)pool_.allocate(kMaximumBytes);  // indexes the unindexed holes
    if (wrong_.empty()) note(model_.seen_statistics(pool_.statistics()));
    return wrong_;
  }
  [[nodiscard]] std::uint64_t refused() const { return refused_; }

 private:
  std::uint64_t below(std::uint64_t bound) {
    random_ = random_ * 6364136223846793005U + 1442695040888963407U;
    return bound == 0 ? 0 : (random_ >> 33) % bound;
  }
  std::uint64_t size(std::uint64_t most) {
    const std::uint64_t order = most >> below(14);
    return 1 + below(order == 0 ? 1 : order);
  }
  void note(const std::string &wrong) {
    if (wrong_.empty()) wrong_ = wrong;
  }

  // Repeats few sizes and frees the newest block first, rarely another one.
  void rise_and_fall() {
    const std::uint64_t rise = below(12);
    for (std::uint64_t step = 0; step < rise; ++step) allocate(sizes_[below(4)]);
    for (std::uint64_t fall = below(rise + 2); fall > 0; --fall) {
      free(below(10) == 0 ? below(live_.size()) : live_.size() - 1);
    }
  }
  void allocate(std::uint64_t bytes) {
    AllocateOutcome outcome{};
    {
      const host_memory::Limit few(starves_ && below(3) == 0 ? below(2) : host_memory::kPlenty);
      outcome = pool_.allocate(bytes);
    }
    if (outcome.kind == AllocateOutcome::Kind::kNoHostMemory && starves_) {
      ++refused_;
      outcome = pool_.allocate(bytes);
    }
    if (outcome) live_.push_back(outcome.block.address);
    note(model_.seen_allocate(bytes, outcome));
  }
  Address take(std::vector<Address> &from, std::uint64_t index) {
    const Address address = from[index];
    from.erase(from.begin() + static_cast<std::ptrdiff_t>(index));
    return address;
  }
  void free(std::uint64_t index) {
    if (index >= live_.size()) return;
    const host_memory::Limit none(starves_ ? 0 : host_memory::kPlenty);
    const Address address = take(live_, index);
    const FreeOutcome outcome = pool_.free(address);
    const host_memory::Limit plenty(host_memory::kPlenty);
    note(model_.seen_free(address, outcome));
  }
  void retire() {
    if (live_.empty()) return;
    const Address address = take(live_, below(2) == 0 ? live_.size() - 1 : below(live_.size()));
    note(model_.seen_retire(address, pool_.retire(address)));
    retired_.push_back(address);
  }
  void reclaim() {
    const Address address = take(retired_, below(retired_.size()));
    FreeOutcome outcome{};
    {
      const host_memory::Limit none(starves_ ? 0 : host_memory::kPlenty);
      outcome = pool_.reclaim(address);
    }
    note(model_.seen_reclaim(address, outcome));
  }
  void add_slab(std::uint64_t bytes) {
    if (model_.slabs().size() >= 6) return;
    const Slab slab{(Address{1} << 44) + below(8) * 2 * kMaximumBytes + below(3) * 300, bytes, ++slabs_};
    AddSlabOutcome outcome{};
    {
      const host_memory::Limit few(starves_ ? below(3) : host_memory::kPlenty);
      outcome = pool_.add_slab(slab);
    }
    if (outcome == AddSlabOutcome::kNoHostMemory && starves_) outcome = pool_.add_slab(slab);
    note(model_.seen_add_slab(slab, outcome));
  }
  void remove_slab() {
    if (model_.slabs().size() < 2) return;
    const std::optional<Slab> free = pool_.wholly_free_slab();
    note(model_.seen_wholly_free_slab(free));
    if (!free) return;
    const host_memory::Limit none(starves_ ? 0 : host_memory::kPlenty);
    if (!pool_.remove_slab(free->id)) note("kept a slab that is free");
    model_.lose_slab(free->id);
  }

  Pool pool_;
  PoolModel model_;
  std::uint64_t random_;
  bool starves_;
  std::uint64_t sizes_[4] = {512, 3 * kMiB, 65536, 1};
  std::vector<Address> live_;  // newest last
  std::vector<Address> retired_;
  std::uint64_t slabs_ = 0;
  std::uint64_t refused_ = 0;
  std::string wrong_;
};

std::uint64_t play(bool starves, std::uint64_t slab_bytes, std::uint64_t most, std::uint64_t seeds, int steps) {
  std::uint64_t refused = 0;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    CAPTURE(seed);
    Stacks stacks(seed, starves);
    REQUIRE(stacks.run(slab_bytes, most, steps) == "");
    refused += stacks.refused();
  }
  return refused;
}

}  // namespace

TEST_CASE("a pool without queries of sums answers as the model does") {
  (void)play(false, 64 * kMiB, 4 * kMiB, 100, 400);
  (void)play(false, 512 * kMiB, 64 * kMiB, 100, 400);
}

TEST_CASE("a pool without queries of sums answers as the model does, with few granules and with terabytes") {
  (void)play(false, 200 * 512, 20 * 512, 100, 400);
  (void)play(false, 3 * kMiB * kMiB, kMiB * kMiB / 4, 100, 400);
}

TEST_CASE("a pool with an unflushed hole when host memory runs out answers as the model does") {
  CHECK(play(true, 64 * kMiB, 4 * kMiB, 200, 400) > 0);
  CHECK(play(true, 512 * kMiB, 64 * kMiB, 100, 400) > 0);
}

TEST_CASE("an unindexed hole becomes the cached one while another one is unflushed") {
  Pool pool;
  REQUIRE(pool.add_slab({Address{1} << 40, 64 * kMiB, 1}) == AddSlabOutcome::kAdded);
  const auto allocate = [&pool](std::uint64_t bytes) {
    const AllocateOutcome outcome = pool.allocate(bytes);
    REQUIRE(outcome);
    return outcome.block.address;
  };
  std::vector<Address> high;
  for (int block = 0; block < 8; ++block) high.push_back(allocate(1024));
  std::vector<Address> small;
  for (int block = 0; block < 8000; ++block) small.push_back(allocate(512));
  // Another hole is the cached one and is used up, so that from now on only larger blocks reuse one hole.
  REQUIRE(pool.free(small[1]));
  REQUIRE(allocate(512) == small[1]);
  std::vector<Address> low;
  for (int block = 0; block < 12; ++block) low.push_back(allocate(1024));
  {
    const host_memory::Limit none(0);
    const std::uint64_t refused = host_memory::refused;
    for (std::size_t block = 1; block < small.size(); block += 2) (void)pool.free(small[block]);
    for (std::size_t block = 1; block < high.size(); block += 2) (void)pool.free(high[block]);
    (void)pool.free(low.back());
    REQUIRE(host_memory::refused > refused);
  }
  CHECK(allocate(1536) == low.back() - 512);
  CHECK(pool.check_invariants() == "");
  CHECK(allocate(1024) == high[1]);
  CHECK(pool.check_invariants() == "");
}

TEST_CASE("a slab at the address of a removed one is named by its blocks") {
  Pool pool;
  const auto slab = [](std::uint64_t place, std::uint64_t id) { return Slab{(place + 1) << 30, kMiB, id}; };
  for (std::uint64_t place = 0; place < 3; ++place) {
    REQUIRE(pool.add_slab(slab(place, place)) == AddSlabOutcome::kAdded);
  }
  const AllocateOutcome before = pool.allocate(512);
  REQUIRE(before.block.slab == 2);
  REQUIRE(pool.free(before.block.address));
  REQUIRE(pool.remove_slab(0));
  REQUIRE(pool.remove_slab(2));
  REQUIRE(pool.add_slab(slab(2, 7)) == AddSlabOutcome::kAdded);
  CHECK(pool.allocate(512).block.slab == 7);
}
