#include "policy/block_pool/quarantine.h"

#include <algorithm>

#include "base/wait.h"

namespace ration::policy {

Quarantine::PendingRecord &Quarantine::PendingRecord::operator=(PendingRecord &&other) noexcept {
  if (this != &other) {
    close();
    open_ = std::exchange(other.open_, nullptr);
  }
  return *this;
}

void Quarantine::PendingRecord::close() {
  if (open_ != nullptr) {
    open_->fetch_sub(1);  // pairs with the acquire in reclaim
    wake_waiters();
    open_ = nullptr;
  }
}

void Quarantine::set_sizes(std::uint64_t pool_bytes, std::uint64_t slack_bytes, std::uint64_t most_bytes,
                           bool takes_from_others) {
  Guard guard(mutex_);
  finest_bytes_ = std::max(pool_bytes / 8, slack_bytes);
  large_bytes_.store(most_bytes / kFewBlocks, std::memory_order_relaxed);
  cap_bytes_.store(std::max(kLeastCapBytes, pool_bytes / 2), std::memory_order_relaxed);
  takes_from_others_.store(takes_from_others, std::memory_order_relaxed);
  publish_due();
}

std::uint64_t Quarantine::most_unwaited_bytes() const {
  return is_capped() ? cap_bytes() + std::min(left_bytes_.load(std::memory_order_relaxed), freed_bytes()) : UINT64_MAX;
}

bool Quarantine::make_room() {
  if (!open_.empty() && open_.back().count < Batch::kMostBlocks) {
    return true;
  }
  if (!has_spare_batch()) {
    return false;
  }
  open_.splice(open_.end(), spare_batches_, spare_batches_.begin());
  return true;
}

bool Quarantine::has_spare_batch() {
  try {
    if (spare_batches_.empty()) {
      spare_batches_.emplace_back();
    }
    return true;
  } catch (...) {
    return false;
  }
}

// REQUIRES: make_room().
Quarantine::Batch &Quarantine::enter(ContextPool &pool, pool::Address address) {
  Batch &batch = open_.back();
  batch.entries[batch.count++] = {address, &pool};
  return batch;
}

Quarantine::Retired Quarantine::retire(ContextPool &pool, pool::Address address, std::uint64_t &bytes,
                                       PendingRecord &pending, bool &due, IpcExporter *exports, bool ordered) {
  due = false;
  Guard guard(mutex_);
  if (pool.closed.load(std::memory_order_relaxed)) {
    return Retired::not_a_block;
  }
  gather();
#ifdef RATION_BREAK_QUARANTINE  // for the test that shows that the data tests see it
  const pool::FreeOutcome broken = pool.blocks.free(address);
  bytes = broken.bytes;
  pending = PendingRecord();
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
  Batch &batch = enter(pool, address);
  note_added({1, bytes, ordered ? 1U : 0U});
  batch.unrecorded.fetch_add(1, std::memory_order_relaxed);
  pending = PendingRecord(batch.unrecorded);
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
  enter(pool, address);
  note_added({1, bytes, 0});
  publish_due();
  return true;
}

// The analysis does not follow a lock into a callback; both run under ours, and the inner one under the fast path's
// too. Room for all that a fast path can hold comes before its lock: obtaining it may be a system call.
void Quarantine::gather() {
  static_assert(KeptFrees::kMost <= Batch::kMostBlocks);
  bool any = false;
  pools_.each_of(device_, [&](ContextPool &pool) RATION_THREAD_ANNOTATION(no_thread_safety_analysis) {
    if (pool.kept.keeps_any() && has_spare_batch()) {
      pool.hand_over_kept(device_, [&](const pool::Address *addresses, std::size_t count, std::uint64_t bytes)
                                       RATION_THREAD_ANNOTATION(no_thread_safety_analysis) {
                                         for (std::size_t i = 0; i < count && make_room(); ++i) {
                                           enter(pool, addresses[i]);
                                         }
                                         note_added({count, bytes, 0});
                                       });
      any = true;
    }
  });
  if (any) {
    publish_due();
  }
}

bool Quarantine::worth_sealing() {
  return DeferredQueue::worth_sealing() || open_size_.blocks >= Batch::kMostBlocks / 4 ||
         open_size_.bytes >= finest_bytes_ / 4;
}

bool Quarantine::is_due() {
  return open_size_.blocks >= next_seal_blocks_ &&
         (open_size_.blocks >= Batch::kMostBlocks << coarseness_ || open_size_.bytes >= finest_bytes_ << coarseness_);
}

// A seal that was refused is not tried again at every free.
void Quarantine::note_seal(Seal seal) {
  if (seal != Seal::begun) {
    next_seal_blocks_ = seal == Seal::taken ? 0 : open_size_.blocks + Batch::kMostBlocks;
  }
  publish_due();
}

// To each what is left until then as if it were the only one: with several at work an epoch may come to hold more.
void Quarantine::publish_due() {
  std::uint64_t blocks = Batch::kMostBlocks << coarseness_;
  std::uint64_t bytes = finest_bytes_ << coarseness_;
  if (open_size_.blocks < next_seal_blocks_) {
    blocks = next_seal_blocks_;
    bytes = UINT64_MAX;
  }
  pools_.each_of(device_, [&](ContextPool &pool) RATION_THREAD_ANNOTATION(no_thread_safety_analysis) {
    pool.kept.set_due(std::min<std::uint64_t>(blocks - std::min(blocks, open_size_.blocks), KeptFrees::kMost),
                      bytes - std::min(bytes, open_size_.bytes), large_bytes(), most_unwaited_bytes());
  });
}

// The pool's lock is taken once for as many neighbours as are its own: mostly all.
DeferredSize Quarantine::release(const Batch::Entry *entries, std::size_t count) {
  DeferredSize released;
  std::array<pool::Address, kSliceBlocks> addresses;
  for (std::size_t begin = 0, end = 0; begin < count; begin = end) {
    ContextPool &pool = *entries[begin].pool;
    for (; end < count && end - begin < addresses.size() && entries[end].pool == &pool; ++end) {
      addresses[end - begin] = entries[end].address;
    }
    released.blocks += end - begin;
    released.bytes += pool.blocks.reclaim(addresses.data(), end - begin).bytes;
  }
  note_reclaimed(released);
  return released;
}

// A slice of a batch at a time, so that a free on another thread never waits for a whole epoch.
bool Quarantine::reclaim(Items &batches, Cleaned &cleaned) {
  const auto ready = std::find_if(batches.begin(), batches.end(), [](const Batch &batch) {
    return batch.unrecorded.load(std::memory_order_acquire) == 0;
  });
  if (ready == batches.end()) {
    return false;
  }
  const std::size_t left = ready->count - std::min(ready->count, kSliceBlocks);
  cleaned.add(release(&ready->entries[left], ready->count - left));
  ready->count = left;
  if (ready->count == 0) {
    spare_batches_.splice(spare_batches_.end(), batches, ready);
  }
  return true;
}

void Quarantine::collect_due() noexcept {
  (void)collect(Sealing::due);  // an error of it belongs to the call that needs the memory
}

void Quarantine::collect_large() noexcept {
  (void)collect(Sealing::always);
}

// A program that has to wait is bound by the device: only fewer and longer waits can help it.
Quarantine::Cleaned Quarantine::wait(std::uint64_t seen) noexcept {
  Cleaned cleaned = DeferredQueue::wait(seen);
  if (cleaned.waited) {
    Guard guard(mutex_);
    coarseness_ = std::min(coarseness_ + 1, kCoarsest);
    publish_due();
  }
  return cleaned;
}

// What other contexts keep does not count against the cap: until they pass, the next wait is for as much again.
Quarantine::Cleaned Quarantine::wait_for_context(const Context &context) noexcept {
  Cleaned cleaned = DeferredQueue::wait_for_context(context);
  Guard guard(mutex_);
  left_bytes_.store(cleaned.left_bytes, std::memory_order_relaxed);
  publish_due();
  return cleaned;
}

std::uint64_t Quarantine::retired() {
  Guard guard(mutex_);
  gather();
  return DeferredQueue::blocks() + reclaimed();
}

std::uint64_t Quarantine::bytes() {
  Guard guard(mutex_);
  gather();
  return DeferredQueue::bytes();
}

std::uint64_t Quarantine::blocks() {
  Guard guard(mutex_);
  gather();
  return DeferredQueue::blocks();
}

DeferredSize Quarantine::forget_in(Items &batches, const ContextPool &pool) {
  DeferredSize forgotten;
  for (Batch &batch : batches) {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < batch.count; ++i) {
      if (batch.entries[i].pool != &pool) {
        batch.entries[kept++] = batch.entries[i];
        continue;
      }
      forgotten.add(release(&batch.entries[i], 1));
    }
    batch.count = kept;
  }
  return forgotten;
}

// What gather() had no host memory for.
void Quarantine::reclaim_kept(ContextPool &pool) noexcept {
  pool.hand_over_kept(device_, [&](const pool::Address *addresses, std::size_t count, std::uint64_t) {
    pool.blocks.assert_locked();
    for (std::size_t i = 0; i < count; ++i) {
      (void)pool.blocks.reclaim_locked(addresses[i]);
    }
  });
}

void Quarantine::forget(ContextPool &pool) noexcept {
  Guard guard(mutex_);
  pool.closed.store(true, std::memory_order_relaxed);
  gather();
  reclaim_kept(pool);
  each_list([&](Items &batches, DeferredSize &size)
                RATION_THREAD_ANNOTATION(no_thread_safety_analysis) { size.remove(forget_in(batches, pool)); });
  publish_due();
}

}  // namespace ration::policy
