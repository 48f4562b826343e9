// Threads that share one pool of granules, on a device that checks its use.
#include <atomic>
#include <thread>
#include <vector>

#include "catch.h"
#include "pool_checks/granule_program.h"

using namespace ration::pool;

namespace {

constexpr std::uint64_t kPage = CheckedDevice::kPage;
constexpr std::uint64_t kPages = 48;

// A thread's own blocks.
class Owner {
 public:
  Owner(GranuleProgram &program, std::uint64_t seed) : pool_(program.pool), device_(program.device), random_(seed) {}

  void live(int steps) {
    for (int step = 0; step < steps; ++step) {
      const std::uint64_t what = below(16);
      if (what < 8) {
        allocate();
      } else if (what < 12) {
        end(live_, below(3) == 0);
      } else if (what < 14) {
        reclaim();
      } else {
        ask();
      }
    }
    while (!live_.empty()) end(live_, false);
    while (!retired_.empty()) reclaim();
  }

  std::uint64_t refused = 0;
  std::uint64_t wrong = 0;

 private:
  std::uint64_t below(std::uint64_t n) { return random_() % n; }

  void allocate() {
    const bool is_large = below(2) == 0;
    const std::uint64_t bytes = is_large ? kPage + below(6 * kPage) : below(3) == 0 ? 256 << 10 : 1 + below(kPage);
    const AllocateOutcome outcome = pool_.allocate(bytes, device_);
    if (!outcome) {
      ++refused;
      wrong += outcome.kind == AllocateOutcome::Kind::kNoRoom ? 0 : 1;
      return end(live_, false);
    }
    device_.take(outcome.block);
    live_.push_back(outcome.block);
  }
  Block remove(std::vector<Block> &blocks) {
    Block &chosen = blocks[below(blocks.size())];
    const Block block = chosen;
    chosen = blocks.back();
    blocks.pop_back();
    return block;
  }
  void end(std::vector<Block> &blocks, bool retires) {
    if (blocks.empty()) return;
    const Block block = remove(blocks);
    if (retires) {
      wrong += pool_.retire(block.address) ? 0 : 1;
      return retired_.push_back(block);
    }
    device_.leave(block.address);
    wrong += pool_.free(block.address) ? 0 : 1;
  }
  void reclaim() {
    if (retired_.empty()) return;
    const Block block = remove(retired_);
    device_.leave(block.address);
    wrong += pool_.reclaim(block.address) ? 0 : 1;
  }
  // Other threads must not affect the answers about this owner's blocks.
  void ask() {
    if (live_.empty()) return;
    const Block &mine = live_[below(live_.size())];
    const std::optional<Block> found = pool_.find(mine.address + below(mine.bytes));
    wrong += found && found->address == mine.address && found->bytes == mine.bytes ? 0 : 1;
    Block listed{};
    wrong += pool_.live_blocks(mine.address, &listed, 1) == 1 && listed.address == mine.address ? 0 : 1;
    wrong += below(8) != 0 || pool_.check_invariants().empty() ? 0 : 1;
  }

  SharedPool &pool_;
  CheckedDevice &device_;
  std::mt19937_64 random_;
  std::vector<Block> live_;
  std::vector<Block> retired_;
};

void share(std::uint64_t threads, std::uint64_t preallocated, std::uint64_t each, bool refuses) {
  CAPTURE(threads, preallocated, each);
  constexpr int kSteps = 12'000;  // of all together
  GranuleProgram program(kPages);
  REQUIRE(program.open(preallocated, each));
  std::vector<Owner> owners;
  for (std::uint64_t seed = 0; seed < threads; ++seed) owners.emplace_back(program, seed);
  {
    std::vector<std::jthread> running;
    for (Owner &owner : owners) {
      running.emplace_back([&owner, threads] { owner.live(kSteps / static_cast<int>(threads)); });
    }
    // The device refuses a call now and then until the threads have ended.
    for (int times = 0; refuses && times < 200; ++times) {
      program.device.refuse(5, 2);
      std::this_thread::yield();
    }
  }
  program.device.refuse(0, 0);
  std::uint64_t refused = 0;
  for (const Owner &owner : owners) {
    CHECK(owner.wrong == 0);
    refused += owner.refused;
  }
  CHECK(program.wrong() == "");
  CHECK(program.fill() == "");
  // Without these the test would prove nothing.
  CHECK(refused > 0);
  CHECK(program.pool.stitch_counts().stitched > 100);
}

}  // namespace

TEST_CASE("threads that share a pool of granules never share a byte of it, and leave all its memory") {
  share(2, kPages, 1, false);
  share(3, kPages, 8, false);
  share(6, 0, 1, false);
}

TEST_CASE("threads that share a pool of granules keep its books while the device refuses calls") {
  share(4, kPages / 2, 4, true);
}
