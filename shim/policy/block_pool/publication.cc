#include "policy/block_pool/publication.h"

namespace ration::policy {

void Publication::publish(int device) noexcept {
  parts_.devices.heed(device);  // it touches shared memory anyway
  const events::DeviceTally &tally = parts_.journal.tally().devices[device];
  ledger::Published published;
  published.used = tally.live_bytes.load(std::memory_order_relaxed);
  published.peak_used = tally.peak_bytes.load(std::memory_order_relaxed);
  published.allocations = tally.allocs.load(std::memory_order_relaxed);
  published.stitching = {.granules = tally.granules.load(std::memory_order_relaxed),
                         .blocks = 0,
                         .total = tally.stitched.load(std::memory_order_relaxed)};
  if (published.stitching.total != 0) {
    published.stitching.blocks = stitched_blocks(device);
  }
  static_assert(events::kReasonCount == ledger::kFailureReasons.size());
  for (std::size_t reason = 0; reason < published.failures.size(); ++reason) {
    published.failures[reason] = tally.denied[reason].load(std::memory_order_relaxed);
  }
  parts_.ledger.account(device).publish(published);
}

void Publication::publish_exactly(int device) noexcept {
  constexpr int kMostTries = 100;
  const events::DeviceTally &tally = parts_.journal.tally().devices[device];
  for (int i = 0; i < kMostTries; ++i) {
    const std::uint64_t used = tally.live_bytes.load(std::memory_order_relaxed);
    const std::uint64_t allocations = tally.allocs.load(std::memory_order_relaxed);
    publish(device);
    // Another thread may have published newer figures before these. Then this thread's figures must be visible before
    // it reads the tally again.
    publications_.fetch_add(1, std::memory_order_acq_rel);  // a fence is unknown to ThreadSanitizer
    if (used == tally.live_bytes.load(std::memory_order_relaxed) &&
        allocations == tally.allocs.load(std::memory_order_relaxed)) {
      return;
    }
  }
}

void Publication::publish_all_exactly() noexcept {
  for (int device = 0; device < ledger::kMaxDevices; ++device) {
    const events::DeviceTally &tally = parts_.journal.tally().devices[device];
    const std::uint64_t used = tally.live_bytes.load(std::memory_order_relaxed);
    if (!parts_.ledger.account(device).shows(used, tally.allocs.load(std::memory_order_relaxed))) {
      publish_exactly(device);
    }
  }
}

std::uint64_t Publication::stitched_blocks(int device) noexcept try {
  std::uint64_t blocks = 0;
  if (const DevicePool *pool = pools_.known(device)) {
    for (const ContextRef &context : pool->contexts()) {
      blocks += existing_pool(*context)->blocks.stitch_counts().live;
    }
  }
  return blocks;
} catch (...) {  // no memory of the host to list the pools
  return 0;
}

}  // namespace ration::policy
