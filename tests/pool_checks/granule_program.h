// A program that allocates, frees, retires and reclaims in a pool of granules, on a device that checks its use. The
// program checks the pool's answers.
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "fuzz/host_memory.h"
#include "pool_checks/checked_device.h"

namespace ration::pool {

class GranuleProgram {
 public:
  static constexpr std::uint64_t kPage = CheckedDevice::kPage;

  explicit GranuleProgram(std::uint64_t pages) : device(pages), pages_(pages) {}

  // Opens the pool with `preallocated` pages, in granules of `each` pages.
  bool open(std::uint64_t preallocated, std::uint64_t each) {
    return pool.stitch_from(device.layout()) && device.preallocate(pool, preallocated, each);
  }

  // --- steps; a step that chooses a block does so by `number` ---

  void allocate(std::uint64_t bytes) {
    const std::uint64_t starved = host_memory::refused;
    const AllocateOutcome outcome = request(bytes);
    if (!outcome) {
      ++refused;
      if (host_memory::refused != starved) return;
      if (outcome.kind != AllocateOutcome::Kind::kNoRoom) wrong_ = "had no host memory";
      if (pool.has_hole(bytes)) wrong_ = "refused a request that a hole holds";
      return;
    }
    if (outcome.block.bytes < bytes || outcome.block.requested != bytes) wrong_ = "gave another size";
    device.take(outcome.block);
    live_.push_back(outcome.block);
  }
  void free(std::uint64_t number) {
    if (live_.empty()) return;
    const Block block = remove(live_, number);
    device.leave(block.address);
    const host_memory::Limit none(0);
    const FreeOutcome outcome = pool.free(block.address);
    if (!outcome || outcome.bytes != block.bytes) wrong_ = "did not free a live block";
  }
  void retire(std::uint64_t number) {
    if (live_.empty()) return;
    retired_.push_back(remove(live_, number));
    const host_memory::Limit none(0);
    const FreeOutcome outcome = pool.retire(retired_.back().address);
    if (!outcome || outcome.bytes != retired_.back().bytes) wrong_ = "did not retire a live block";
  }
  void reclaim(std::uint64_t number) {
    if (retired_.empty()) return;
    const Block block = remove(retired_, number);
    device.leave(block.address);
    const host_memory::Limit none(0);
    const FreeOutcome outcome = pool.reclaim(block.address);
    if (!outcome || outcome.bytes != block.bytes) wrong_ = "did not reclaim a retired block";
  }
  // Looks up a block by any address in it, and looks up a retired block.
  void find(std::uint64_t number) {
    if (!live_.empty()) {
      const Block &block = live_[number % live_.size()];
      const std::optional<Block> found = pool.find(block.address + number % block.bytes);
      if (!found || !is_same(*found, block)) wrong_ = "did not find a live block";
      if (block.bytes > kUnitBytes && pool.free(block.address + kUnitBytes)) wrong_ = "freed a part of a block";
      if (pool.reclaim(block.address)) wrong_ = "reclaimed a live block";
    }
    if (!retired_.empty()) {
      const Block &block = retired_[number % retired_.size()];
      if (pool.find(block.address)) wrong_ = "found a retired block";
      if (pool.free(block.address)) wrong_ = "freed a retired block";
    }
  }
  void list() {
    std::vector<Block> listed(live_.size() + 1);
    listed.resize(pool.live_blocks(0, listed.data(), listed.size()));
    std::vector<Block> expected = live_;
    std::ranges::sort(expected, {}, &Block::address);
    if (!std::ranges::equal(listed, expected, is_same)) wrong_ = "listed other blocks than those that are live";
  }
  // Empties the pool and fills it with blocks of one page, then with ever smaller blocks. Returns an error if some of
  // its memory is missing.
  std::string fill() {
    empty();
    for (std::uint64_t bytes = kPage; bytes >= kUnitBytes; bytes /= 2) {
      for (std::uint64_t before = refused; before == refused;) allocate(bytes);
    }
    std::uint64_t filled = 0;
    for (const Block &block : live_) filled += block.bytes;
    std::string wrong = this->wrong();
    empty();
    if (wrong.empty()) wrong = this->wrong();
    if (!wrong.empty() || filled == pages_ * kPage) return wrong;
    return std::to_string(pages_ * kPage - filled) + " bytes cannot be had again";
  }
  void empty() {
    while (!live_.empty()) free(0);
    while (!retired_.empty()) reclaim(0);
  }
  // After `after` more of the pool's requests for host memory, all requests are refused until the pool's call ends.
  void starve(std::uint64_t after) { host_requests_ = after; }

  // The first error, or an empty string.
  [[nodiscard]] std::string wrong() const {
    if (!wrong_.empty()) return wrong_;
    std::string wrong = device.wrong();
    return wrong.empty() ? pool.check_invariants() : wrong;
  }
  [[nodiscard]] std::size_t live() const { return live_.size(); }
  [[nodiscard]] std::size_t retired() const { return retired_.size(); }

  CheckedDevice device;
  SharedPool pool;
  std::uint64_t refused = 0;

 private:
  static bool is_same(const Block &a, const Block &b) {
    return a.address == b.address && a.bytes == b.bytes && a.requested == b.requested && a.slab == b.slab;
  }
  static Block remove(std::vector<Block> &blocks, std::uint64_t number) {
    Block &chosen = blocks[number % blocks.size()];
    const Block block = chosen;
    chosen = blocks.back();
    blocks.pop_back();
    return block;
  }
  AllocateOutcome request(std::uint64_t bytes) {
    const std::uint64_t starved = host_memory::refused;
    const host_memory::Limit limit(host_requests_);
    const AllocateOutcome outcome = pool.allocate(bytes, device);
    host_requests_ = host_memory::refused == starved ? host_memory::left : host_memory::kPlenty;
    return outcome;
  }

  std::uint64_t pages_;
  std::uint64_t host_requests_ = host_memory::kPlenty;
  std::vector<Block> live_;
  std::vector<Block> retired_;
  std::string wrong_;
};

// Random steps. The phases of the program use sizes of all kinds, so that the pool stitches in some of them.
class RandomSteps {
 public:
  RandomSteps(GranuleProgram &program, std::uint64_t seed, std::uint64_t pages)
      : program_(program), pages_(pages), random_(seed) {}

  void step() {
    if (below(64) == 0) phase_ = below(4);
    const std::uint64_t what = below(16);
    if (what < 9 && program_.live() < kMostLive) {
      const std::uint64_t refused = program_.refused;
      program_.allocate(size());
      if (program_.refused != refused) program_.free(below(kMostLive));
    } else if (what < 13 || program_.retired() == 0) {
      below(3) == 0 ? program_.retire(below(kMostLive)) : program_.free(below(kMostLive));
    } else {
      program_.reclaim(below(kMostLive));
    }
  }

 private:
  static constexpr std::uint64_t kMostLive = 64;
  static constexpr std::uint64_t kPage = GranuleProgram::kPage;

  std::uint64_t below(std::uint64_t n) { return random_() % n; }
  std::uint64_t size() {
    const std::uint64_t large = 1 + pages_ / 4;
    switch (below(8) == 0 ? below(4) : phase_) {
      case 0:  // sizes that hardly recur
        return kPage + below(large * kPage);
      case 1:  // a few sizes again and again
        return kPage / 2 * (3 + below(5)) + 512 * below(2);
      case 2:  // small sizes, some of them in runs
        return below(2) == 0 ? std::uint64_t{256} << 10 : 1 + below(kPage / 2);
      default:
        return kPage * (1 + below(large));
    }
  }

  GranuleProgram &program_;
  std::uint64_t pages_;
  std::mt19937_64 random_;
  std::uint64_t phase_ = 0;
};

}  // namespace ration::pool
