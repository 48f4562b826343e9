// How freed blocks get into quarantine: the half of Quarantine that every free may meet.
// Layer: policy.
#include <algorithm>

#include "policy/block_pool/quarantine.h"

namespace ration::policy {

Quarantine::PendingRecord &Quarantine::PendingRecord::operator=(PendingRecord &&other) noexcept {
  if (this != &other) {
    close();
    open_ = other.open_;
    other.open_ = nullptr;
  }
  return *this;
}

void Quarantine::PendingRecord::close() {
  if (open_ != nullptr) {
    open_->fetch_sub(1);  // pairs with the acquire in reclaim_slice
    wake_waiters();
    open_ = nullptr;
  }
}

void Quarantine::set_sizes(std::uint64_t pool_bytes, std::uint64_t slack_bytes) {
  Guard guard(mutex_);
  finest_bytes_ = std::max(pool_bytes / 8, slack_bytes);
  publish_due();
}

bool Quarantine::make_room() {
  if (!open_.empty() && open_.back().count < kBatchBlocks) {
    return true;
  }
  if (!spare_batches_.empty()) {
    open_.splice(open_.end(), spare_batches_, spare_batches_.begin());
    return true;
  }
  try {
    open_.emplace_back();
    return true;
  } catch (...) {
    return false;
  }
}

Quarantine::Retired Quarantine::retire(ContextPool &pool, pool::Address address, std::uint64_t &bytes,
                                       PendingRecord &ticket, bool &due, IpcExporter *exports) {
  due = false;
  Guard guard(mutex_);
  if (pool.closed.load(std::memory_order_relaxed)) {
    return Retired::not_a_block;
  }
  gather();
#ifdef RATION_BREAK_QUARANTINE  // for the test that shows that the data tests see it
  const pool::FreeOutcome broken = pool.blocks.free(address);
  bytes = broken.bytes;
  ticket = PendingRecord();
  return broken ? Retired::retired : Retired::not_a_block;
#endif
  if (!make_room()) {
    return Retired::no_host_memory;
  }
  const pool::FreeOutcome outcome = pool.blocks.retire(address);
  if (!outcome) {
    return Retired::not_a_block;
  }
  bytes = outcome.bytes;
  if (exports != nullptr && exports->keep(pool, address, bytes)) {
    return Retired::kept;
  }
  Batch &batch = open_.back();
  batch.entries[batch.count++] = {address, &pool};
  batch.unrecorded.fetch_add(1, std::memory_order_relaxed);
  ticket = PendingRecord(batch.unrecorded);
  count_in(1, bytes);
  publish_due();
  due = is_due();
  return Retired::retired;
}

bool Quarantine::take_back(ContextPool &pool, pool::Address address, std::uint64_t bytes) {
  Guard guard(mutex_);
  gather();
  if (!make_room()) {
    return false;
  }
  Batch &batch = open_.back();
  batch.entries[batch.count++] = {address, &pool};
  count_in(1, bytes);
  publish_due();
  return true;
}

void Quarantine::count_in(std::uint64_t blocks, std::uint64_t bytes) {
  open_blocks_ += blocks;
  open_bytes_ += bytes;
  bytes_.fetch_add(bytes, std::memory_order_relaxed);
  blocks_.fetch_add(blocks, std::memory_order_relaxed);
  retired_.fetch_add(blocks, std::memory_order_relaxed);
}

bool Quarantine::is_due() const {
  return open_blocks_ >= next_seal_blocks_ &&
         (open_blocks_ >= kBatchBlocks << coarseness_ || open_bytes_ >= finest_bytes_ << coarseness_);
}

// To each what is left until then as if it were the only one: with several at work an epoch may come to hold more.
void Quarantine::publish_due() {
  std::uint64_t blocks = kBatchBlocks << coarseness_;
  std::uint64_t bytes = finest_bytes_ << coarseness_;
  if (open_blocks_ < next_seal_blocks_) {
    blocks = next_seal_blocks_;
    bytes = UINT64_MAX;
  }
  fast_paths_.each_of(device_, [&](FastPath &path) RATION_THREAD_ANNOTATION(no_thread_safety_analysis) {
    path.set_due(std::min<std::uint64_t>(blocks - std::min(blocks, open_blocks_), FastPath::kMostFreed),
                 bytes - std::min(bytes, open_bytes_));
  });
}

// The analysis does not follow a lock into a callback; both run under ours, and the inner one under the fast path's
// too.
void Quarantine::gather() {
  bool any = false;
  fast_paths_.each_of(device_, [&](FastPath &path) RATION_THREAD_ANNOTATION(no_thread_safety_analysis) {
    if (path.keeps_any() && has_spare_batch()) {
      path.hand_over(device_, [&](ContextPool &pool, const pool::Address *addresses, std::size_t count,
                                  std::uint64_t bytes) RATION_THREAD_ANNOTATION(no_thread_safety_analysis) {
        for (std::size_t i = 0; i < count && make_room(); ++i) {
          Batch &batch = open_.back();
          batch.entries[batch.count++] = {addresses[i], &pool};
        }
        count_in(count, bytes);
      });
      any = true;
    }
  });
  if (any) {
    publish_due();
  }
}

// Room for all that a fast path can keep, before its lock is taken: obtaining it may be a system call.
bool Quarantine::has_spare_batch() {
  static_assert(FastPath::kMostFreed <= kBatchBlocks);
  try {
    if (spare_batches_.empty()) {
      spare_batches_.emplace_back();
    }
    return true;
  } catch (...) {
    return false;
  }
}

bool Quarantine::take_in() {
  Guard guard(mutex_);
  gather();
  return is_due();
}

std::uint64_t Quarantine::retired() {
  Guard guard(mutex_);
  gather();
  return retired_.load(std::memory_order_relaxed);
}

std::uint64_t Quarantine::bytes() {
  Guard guard(mutex_);
  gather();
  return bytes_.load(std::memory_order_relaxed);
}

std::uint64_t Quarantine::blocks() {
  Guard guard(mutex_);
  gather();
  return blocks_.load(std::memory_order_relaxed);
}

}  // namespace ration::policy
