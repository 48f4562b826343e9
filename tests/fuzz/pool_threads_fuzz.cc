// Threads that allocate, free, retire, reclaim, grow and give back one pool at once. Each owner writes its name into
// plain memory for every granule of its block: the names show a granule with two owners, and ThreadSanitizer a lock
// that does not order one owner before the next.
#include <atomic>
#include <deque>
#include <map>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "catch.h"
#include "pool/shared_pool.h"

using namespace ration::pool;

namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
constexpr Address kBase = 0x7f0000000000;
constexpr std::uint64_t kDeviceBytes = 24 * kMiB;

// The first error of any thread.
class Verdict {
 public:
  void expect(bool holds, const char *what) {
    if (holds) return;
    const std::lock_guard guard(mutex_);
    if (first_.empty()) first_ = what;
  }
  [[nodiscard]] std::string first() {
    const std::lock_guard guard(mutex_);
    return first_;
  }

 private:
  std::mutex mutex_;
  std::string first_;
};

// The owner's name for each granule of a device; 0: none.
class Memory {
 public:
  void take(const Block &block, std::uint32_t name, Verdict &verdict) {
    each(block, [&](std::uint32_t &granule) {
      verdict.expect(granule == 0, "a block was allocated that has an owner");
      granule = name;
    });
  }
  void leave(const Block &block, std::uint32_t name, std::uint32_t successor, Verdict &verdict) {
    each(block, [&](std::uint32_t &granule) {
      verdict.expect(granule == name, "another owner wrote into a block");
      granule = successor;
    });
  }
  void expect_unowned(const Slab &slab, Verdict &verdict) {
    const Block all{(slab.address + 511) / 512 * 512, slab.bytes / 512 * 512, 0, 0};
    each(all,
         [&](const std::uint32_t &granule) { verdict.expect(granule == 0, "a slab was returned with a block in it"); });
  }

 private:
  template <class Visit>
  void each(const Block &block, const Visit &visit) {
    const std::uint64_t first = (block.address - kBase) / 512;
    for (std::uint64_t granule = first; granule < first + block.bytes / 512; ++granule) visit(names_[granule]);
  }

  std::vector<std::uint32_t> names_ = std::vector<std::uint32_t>(kDeviceBytes / 512 + 2);
};

// Slabs at any place of one device, reused, and the retired blocks that are not clean.
class Device final : public Upstream {
 public:
  Device(SharedPool &pool, Verdict &verdict) : pool_(pool), verdict_(verdict) {}

  bool collect() noexcept override { return reclaim_all_but(16); }
  bool wait() noexcept override { return reclaim_all_but(0); }
  std::vector<Slab> grow(const GrowthWish &wish) noexcept override {
    verdict_.expect(growing_.fetch_add(1) == 0, "two threads grow at once");
    if (wish.bytes % 3 == 0) (void)pool_.give_back(*this);
    const std::optional<Slab> slab = cut(wish.bytes + wish.bytes % 5 * 300'000);
    growing_.fetch_sub(1);
    return slab ? std::vector<Slab>{*slab} : std::vector<Slab>();
  }
  void shrink(const Slab &slab) noexcept override {
    memory.expect_unowned(slab, verdict_);
    const std::lock_guard guard(mutex_);
    verdict_.expect(slabs_.erase(slab.address) == 1, "gave back an unknown slab");
  }
  // Ends the caller's ownership of the block.
  void retire(const Block &block, std::uint32_t name) {
    const std::uint32_t retired = ~name;
    memory.leave(block, name, retired, verdict_);
    const FreeOutcome outcome = pool_.retire(block.address);
    verdict_.expect(outcome && outcome.bytes == block.bytes, "did not retire a live block");
    const std::lock_guard guard(mutex_);
    retired_.push_back({block, retired});
  }
  [[nodiscard]] std::size_t slabs() {
    const std::lock_guard guard(mutex_);
    return slabs_.size();
  }

  Memory memory;
  std::atomic<std::uint64_t> grown = 0, reclaimed = 0;

 private:
  struct Retired {
    Block block;
    std::uint32_t name;
  };

  std::optional<Slab> cut(std::uint64_t bytes) {
    const std::lock_guard guard(mutex_);
    const std::uint64_t odd = grown % 4 * 300;  // slabs need not be aligned
    Address from = kBase + odd;
    for (const auto &[address, slab_bytes] : slabs_) {
      if (from + bytes <= address) break;
      from = address + slab_bytes + odd;
    }
    if (from + bytes > kBase + kDeviceBytes) return std::nullopt;
    slabs_[from] = bytes;
    return Slab{from, bytes, ++grown};
  }

  bool reclaim_all_but(std::size_t kept) {
    // One thread at a time: no `false` while another thread is about to reclaim.
    const std::lock_guard turn(turn_);
    for (bool any = false;; any = true) {
      Retired oldest{};
      {
        const std::lock_guard guard(mutex_);
        if (retired_.size() <= kept) return any;
        oldest = retired_.front();
        retired_.pop_front();
      }
      memory.leave(oldest.block, oldest.name, 0, verdict_);
      const FreeOutcome outcome = pool_.reclaim(oldest.block.address);
      verdict_.expect(outcome && outcome.bytes == oldest.block.bytes, "did not reclaim a retired block");
      ++reclaimed;
    }
  }

  SharedPool &pool_;
  Verdict &verdict_;
  std::mutex turn_;
  std::mutex mutex_;
  std::map<Address, std::uint64_t> slabs_;
  std::deque<Retired> retired_;
  std::atomic<int> growing_ = 0;
};

class Owner {
 public:
  Owner(SharedPool &pool, Device &device, Verdict &verdict, std::uint32_t number)
      : pool_(pool), device_(device), verdict_(verdict), number_(number), random_(number) {}

  void live(int steps) {
    for (int step = 0; step < steps; ++step) {
      const std::uint32_t what = random_() % 16;
      if (what < 8) {
        allocate();
      } else if (blocks_.empty()) {
        continue;
      } else if (what < 12) {
        end(random_() % 3 != 0);
      } else {
        ask(what);
      }
    }
    while (!blocks_.empty()) end(false);
  }

  std::uint64_t refused = 0;

 private:
  struct Mine {
    Block block;
    std::uint32_t name;
  };

  void allocate() {
    std::uint64_t bytes = (std::uint64_t{1} << random_() % 19) + random_() % 600;
    if (random_() % 64 == 0) bytes = 6 * kMiB;
    if (random_() % 256 == 0) bytes = kMaximumBytes - random_() % 2 * 4096;
    const AllocateOutcome outcome = pool_.allocate(bytes, device_);
    if (!outcome) {
      verdict_.expect(outcome.kind == AllocateOutcome::Kind::kNoRoom, "had no host memory");
      ++refused;
      if (!blocks_.empty()) end(true);
      return;
    }
    verdict_.expect(outcome.block.bytes >= bytes && outcome.block.requested == bytes, "gave another size");
    const std::uint32_t name = (++names_ << 4 | number_) & 0x7fffffff;
    device_.memory.take(outcome.block, name, verdict_);
    blocks_.push_back({outcome.block, name});
  }

  void end(bool retire) {
    const std::size_t which = random_() % blocks_.size();
    const Mine mine = blocks_[which];
    blocks_[which] = blocks_.back();
    blocks_.pop_back();
    if (retire) return device_.retire(mine.block, mine.name);
    device_.memory.leave(mine.block, mine.name, 0, verdict_);
    const FreeOutcome outcome = pool_.free(mine.block.address);
    verdict_.expect(outcome && outcome.bytes == mine.block.bytes, "did not free a live block");
  }

  // Other threads must not affect the answers about this owner's blocks.
  void ask(std::uint32_t what) {
    const Block &mine = blocks_[random_() % blocks_.size()].block;
    const auto is_mine = [&mine](const Block &block) {
      return block.address == mine.address && block.bytes == mine.bytes && block.requested == mine.requested &&
             block.slab == mine.slab;
    };
    if (what == 12) {
      const std::optional<Block> found = pool_.find(mine.address + random_() % mine.bytes);
      verdict_.expect(found && is_mine(*found), "did not find a live block");
    } else if (what == 13) {
      Block listed{};
      verdict_.expect(pool_.live_blocks(mine.address, &listed, 1) == 1 && is_mine(listed), "did not list a live block");
    } else if (what == 14) {
      const std::optional<Slab> slab = pool_.slab_of(mine.address);
      verdict_.expect(slab && slab->id == mine.slab, "named a wrong slab");
      verdict_.expect(pool_.reserve(random_() % 200), "had no host memory");
    } else {
      const Statistics statistics = pool_.statistics();
      verdict_.expect(statistics.blocks > 0 && statistics.used_bytes >= mine.bytes, "miscounted");
      verdict_.expect(random_() % 8 != 0 || pool_.check_invariants().empty(), "broke an invariant");
      (void)pool_.give_back(device_);
    }
  }

  SharedPool &pool_;
  Device &device_;
  Verdict &verdict_;
  std::uint32_t number_;
  std::mt19937 random_;
  std::uint32_t names_ = 0;
  std::vector<Mine> blocks_;
};

}  // namespace

TEST_CASE("with any number of threads, no granule has two owners and no block is left") {
  constexpr int kSteps = 100'000;  // of all together
  for (const std::uint32_t count : {2U, 3U, 5U, 8U}) {
    CAPTURE(count);
    SharedPool pool;
    Verdict verdict;
    Device device(pool, verdict);
    std::vector<Owner> owners;
    for (std::uint32_t number = 0; number < count; ++number) owners.emplace_back(pool, device, verdict, number);
    {
      std::vector<std::jthread> threads;
      for (Owner &owner : owners) {
        threads.emplace_back([&owner, count] { owner.live(kSteps / static_cast<int>(count)); });
      }
    }
    CHECK(verdict.first() == "");
    CHECK(pool.check_invariants() == "");
    std::uint64_t refused = 0;
    for (const Owner &owner : owners) refused += owner.refused;
    // Without these cases the test would prove nothing.
    CHECK(refused > 0);
    CHECK(device.grown > 1);  // the number depends on the scheduler
    CHECK(device.reclaimed > 0);

    (void)device.wait();
    const Statistics statistics = pool.statistics();
    CHECK(statistics.used_bytes + statistics.retired_bytes == 0);
    CHECK(pool.give_back(device) == statistics.slab_bytes);
    CHECK(device.slabs() == 0);
    CHECK(verdict.first() == "");
  }
}
