#include "policy/block_pool/quarantine.h"

#include <algorithm>

#include "base/wait.h"

namespace ration::policy {
namespace {

constexpr std::size_t kSliceBlocks = 64;

QuarantineBatch &batch_of(const std::unique_ptr<Deferred> &item) {
  return static_cast<QuarantineBatch &>(*item);
}

// Reclaims adjacent entries. Takes a pool's lock once for each run of entries that are its own: mostly for all.
DeferredSize release(const QuarantineBatch::Entry *entries, std::size_t count) {
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
  return released;
}

DeferredSize release_all_of(const ContextPool &pool, QuarantineBatch &batch) {
  DeferredSize released;
  std::size_t kept = 0;
  for (std::size_t i = 0; i < batch.count; ++i) {
    if (batch.entries[i].pool == &pool) {
      released.add(release(&batch.entries[i], 1));
    } else {
      batch.entries[kept++] = batch.entries[i];
    }
  }
  batch.count = kept;
  return released;
}

}  // namespace

void Quarantine::Close::operator()(std::atomic<int> *pending) const {
  pending->fetch_sub(1);  // pairs with the acquire in reclaim
  wake_waiters();
}

void Quarantine::set_sizes(std::uint64_t pool_bytes, std::uint64_t slack_bytes, std::uint64_t most_bytes,
                           bool takes_from_others) {
  Guard guard(mutex_);
  pace_.set_sizes(pool_bytes, slack_bytes, most_bytes, takes_from_others);
  publish_due();
}

std::uint64_t Quarantine::most_unwaited_bytes() const {
  return fences_.by_events() ? UINT64_MAX : pace_.most_unwaited_bytes(freed_bytes());
}

bool Quarantine::exceeds_cap() {
  const std::uint64_t most = most_unwaited_bytes();
  return most != UINT64_MAX && bytes() > most;
}

bool Quarantine::make_room() {
  try {
    if (spare_batches_.empty()) {
      spare_batches_.push_back(std::make_unique<Batch>());
    }
    return true;
  } catch (...) {
    return false;
  }
}

Quarantine::Batch &Quarantine::enter(ContextPool &pool, pool::Address address) {
  if (open_.empty() || batch_of(open_.back()).count == SealPace::kFinestBlocks) {
    open_.splice(open_.end(), spare_batches_, spare_batches_.begin());
  }
  Batch &batch = batch_of(open_.back());
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
#ifdef RATION_BREAK_QUARANTINE  // for the test which proves that the data tests notice this
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
  pending = PendingRecord(&batch.unrecorded);
  publish_due();
  due = pace_.is_due(open_size_);
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

// The thread-safety analysis does not follow a lock into a callback. Both callbacks run under our lock, and the inner
// one under the pool's, too. Room for all that a fast path can keep is made before the pool's lock is taken, because
// that may need a system call.
void Quarantine::gather() {
  static_assert(KeptFrees::kMost <= SealPace::kFinestBlocks);
  bool any = false;
  pools_.each_of(device_, [&](ContextPool &pool) RATION_THREAD_ANNOTATION(no_thread_safety_analysis) {
    if (pool.kept.keeps_any() && make_room()) {
      pool.hand_over_kept(device_, [&](const pool::Address *addresses, std::size_t count, std::uint64_t bytes)
                                       RATION_THREAD_ANNOTATION(no_thread_safety_analysis) {
                                         for (std::size_t i = 0; i < count; ++i) {
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
  return DeferredQueue::worth_sealing() || pace_.is_worthwhile(open_size_);
}

void Quarantine::note_seal(Seal seal) {
  if (seal != Seal::begun) {
    pace_.note_seal(seal == Seal::taken, open_size_);
  }
  publish_due();
}

// Each pool is told all that is left until a seal is due, as if it were the only one. If several are at work, an epoch
// may come to hold more.
void Quarantine::publish_due() {
  const DeferredSize left = pace_.left(open_size_);
  pools_.each_of(device_, [&](ContextPool &pool) {
    pool.kept.set_due(std::min<std::uint64_t>(left.blocks, KeptFrees::kMost), left.bytes, pace_.large_bytes(),
                      most_unwaited_bytes());
  });
}

// A slice of a batch at a time, so that a free on another thread never waits for a whole epoch.
bool Quarantine::reclaim(Items &batches, Cleaned &cleaned) {
  const auto ready = std::find_if(batches.begin(), batches.end(), [](const std::unique_ptr<Deferred> &item) {
    return batch_of(item).unrecorded.load(std::memory_order_acquire) == 0;
  });
  if (ready == batches.end()) {
    return false;
  }
  Batch &batch = batch_of(*ready);
  const std::size_t count = std::min(batch.count, kSliceBlocks);
  batch.count -= count;
  const DeferredSize released = release(&batch.entries[batch.count], count);
  note_reclaimed(released);
  cleaned.add(released);
  if (batch.count == 0) {
    spare_batches_.splice(spare_batches_.end(), batches, ready);
  }
  return true;
}

void Quarantine::collect_freed(bool large) noexcept {
  if (!large) {
    Guard guard(mutex_);
    gather();
    if (!pace_.is_due(open_size_)) {
      return;
    }
  }
  (void)collect(Sealing::always);  // its error is for the call that needs the memory
}

Quarantine::Cleaned Quarantine::wait(std::uint64_t seen) noexcept {
  Cleaned cleaned = DeferredQueue::wait(seen);
  if (cleaned.waited) {
    Guard guard(mutex_);
    pace_.coarsen();
    publish_due();
  }
  return cleaned;
}

Quarantine::Cleaned Quarantine::wait_for_context(const Context &context) noexcept {
  Cleaned cleaned = DeferredQueue::wait_for_context(context);
  Guard guard(mutex_);
  pace_.note_left(cleaned.left_bytes);
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

void Quarantine::forget(ContextPool &pool) noexcept {
  Guard guard(mutex_);
  pool.closed.store(true, std::memory_order_relaxed);
  gather();
  // The blocks that gather() had no host memory for.
  pool.hand_over_kept(device_, [&](const pool::Address *addresses, std::size_t count, std::uint64_t) {
    pool.blocks.assert_locked();
    for (std::size_t i = 0; i < count; ++i) {
      (void)pool.blocks.reclaim_locked(addresses[i]);
    }
  });
  each_list([&](Items &batches, DeferredSize &size) {
    for (const std::unique_ptr<Deferred> &item : batches) {
      const DeferredSize released = release_all_of(pool, batch_of(item));
      note_reclaimed(released);
      size.remove(released);
    }
  });
  publish_due();
}

}  // namespace ration::policy
