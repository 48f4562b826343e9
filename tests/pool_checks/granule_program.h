// A program that allocates, frees, retires and reclaims at random in a pool of granules, on a device that checks its
// use. Its phases have sizes of all kinds, so that the pool stitches in some and not in others.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "pool_checks/checked_device.h"

namespace ration::pool {

class GranuleProgram {
 public:
  static constexpr std::uint64_t kPage = CheckedDevice::kPage;

  GranuleProgram(std::uint64_t seed, std::uint64_t pages) : device(pages), pages_(pages), random_(seed) {}

  // Of `preallocated` pages in granules of `each`.
  bool open(std::uint64_t preallocated, std::uint64_t each) {
    return pool.stitch_from(device.layout()) && device.preallocate(pool, preallocated, each);
  }

  void step() {
    if (below(64) == 0) phase_ = below(4);
    const std::uint64_t what = below(16);
    if (what < 9 && live_.size() < kMostLive) return allocate(size());
    if (what < 13 || retired_.empty()) return end(below(3) == 0);
    reclaim(below(retired_.size()));
  }
  // The first error, or empty.
  [[nodiscard]] std::string wrong() const {
    if (!wrong_.empty()) return wrong_;
    std::string wrong = device.wrong();
    return wrong.empty() ? pool.check_invariants() : wrong;
  }
  void empty() {
    while (!live_.empty()) end(false);
    while (!retired_.empty()) reclaim(0);
  }
  // Empties the pool and fills it, with pages as long as it has some; an error where some of its memory is missing.
  std::string fill() {
    empty();
    std::uint64_t filled = 0;
    for (std::uint64_t bytes = kPage; bytes >= kGranuleBytes; bytes /= 2) {
      while (const AllocateOutcome outcome = pool.allocate(bytes, device)) {
        device.take(outcome.block);
        live_.push_back(outcome.block);
        filled += outcome.block.bytes;
      }
    }
    std::string wrong = this->wrong();
    empty();
    if (wrong.empty()) wrong = this->wrong();
    if (!wrong.empty() || filled == pages_ * kPage) return wrong;
    return std::to_string(pages_ * kPage - filled) + " bytes cannot be had again";
  }

  std::uint64_t below(std::uint64_t n) { return random_() % n; }
  void allocate(std::uint64_t bytes) {
    const AllocateOutcome outcome = pool.allocate(bytes, device);
    if (!outcome) {
      ++refused;
      if (pool.has_hole(bytes)) wrong_ = "refused a request that a hole holds";
      if (outcome.kind != AllocateOutcome::Kind::kNoRoom) ++without_host_memory;
      return end(false);
    }
    if (outcome.block.bytes < bytes || outcome.block.requested != bytes) wrong_ = "gave another size";
    device.take(outcome.block);
    live_.push_back(outcome.block);
  }

  CheckedDevice device;
  SharedPool pool;
  std::uint64_t refused = 0;
  std::uint64_t without_host_memory = 0;

 private:
  static constexpr std::size_t kMostLive = 64;

  std::uint64_t size() {
    const std::uint64_t large = 1 + pages_ / 4;
    switch (below(8) == 0 ? below(4) : phase_) {
      case 0:  // sizes of their own
        return kPage + below(large * kPage);
      case 1:  // a few sizes again and again
        return kPage / 2 * (3 + below(5)) + 512 * below(2);
      case 2:  // small ones, of runs in part
        return below(2) == 0 ? std::uint64_t{256} << 10 : 1 + below(kPage / 2);
      default:
        return kPage * (1 + below(large));
    }
  }
  static Block remove(std::vector<Block> &blocks, std::size_t which) {
    const Block block = blocks[which];
    blocks[which] = blocks.back();
    blocks.pop_back();
    return block;
  }
  void end(bool retire) {
    if (live_.empty()) return;
    const Block block = remove(live_, below(live_.size()));
    if (retire) {
      if (!pool.retire(block.address)) wrong_ = "did not retire a live block";
      return retired_.push_back(block);
    }
    device.leave(block.address);
    const FreeOutcome outcome = pool.free(block.address);
    if (!outcome || outcome.bytes != block.bytes) wrong_ = "did not free a live block";
  }
  void reclaim(std::size_t which) {
    const Block block = remove(retired_, which);
    device.leave(block.address);
    const FreeOutcome outcome = pool.reclaim(block.address);
    if (!outcome || outcome.bytes != block.bytes) wrong_ = "did not reclaim a retired block";
  }

  std::uint64_t pages_;
  std::mt19937_64 random_;
  std::uint64_t phase_ = 0;
  std::vector<Block> live_;
  std::vector<Block> retired_;
  std::string wrong_;
};

}  // namespace ration::pool
