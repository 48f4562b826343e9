#include "policy/block_pool/quarantine.h"

#include <algorithm>
#include <utility>

#include "base/wait.h"

namespace ration::policy {

// Detached first: the moment that is taken then lies behind every free that it speaks for.
void Quarantine::seal(Cleaned &cleaned) {
  std::list<Epoch> fresh;
  {
    Guard guard(mutex_);
    gather();
    if (open_blocks_ == 0) {
      return;
    }
    if (!spare_epochs_.empty()) {
      fresh.splice(fresh.end(), spare_epochs_, spare_epochs_.begin());
    }
  }
  if (fresh.empty()) {
    fresh.emplace_back();
  }
  Epoch &epoch = fresh.front();
  std::uint64_t blocks = 0;
  std::uint64_t bytes = 0;
  {
    Guard guard(mutex_);
    epoch.batches.splice(epoch.batches.end(), open_);
    blocks = std::exchange(open_blocks_, 0);
    bytes = std::exchange(open_bytes_, 0);
    publish_due();
    ++sealing_;
  }
  CUresult error = CUDA_SUCCESS;
  const FenceTracker::Taken taken = fences_.try_take(epoch.moment, error);
  Guard guard(mutex_);
  --sealing_;
  wake_waiters();
  if (taken == FenceTracker::Taken::taken) {
    const auto later = std::find_if(sealed_.begin(), sealed_.end(),
                                    [&](const Epoch &other) { return other.moment.number > epoch.moment.number; });
    sealed_.splice(later, fresh);
    next_seal_blocks_ = 0;
    publish_due();
    return;
  }
  open_.splice(open_.begin(), epoch.batches);
  spare_epochs_.splice(spare_epochs_.end(), fresh);
  open_blocks_ += blocks;
  open_bytes_ += bytes;
  next_seal_blocks_ = open_blocks_ + kBatchBlocks;  // not again at every free
  publish_due();
  cleaned.capturing |= taken == FenceTracker::Taken::capturing;
  cleaned.ending |= taken == FenceTracker::Taken::ending;
  if (taken == FenceTracker::Taken::failed) {
    cleaned.error = error;
  }
}

Quarantine::Epoch *Quarantine::oldest_not_passed(std::uint64_t up_to) {
  Guard guard(mutex_);
  for (Epoch &epoch : sealed_) {
    if (!epoch.passed && epoch.moment.number <= up_to) {
      ++epoch.users;
      return &epoch;
    }
  }
  return nullptr;
}

void Quarantine::note_answer(Epoch &epoch, CUresult answer, Cleaned &cleaned) {
  if (answer != CUDA_SUCCESS && answer != CUDA_ERROR_NOT_READY) {
    cleaned.error = answer;
  }
  Guard guard(mutex_);
  --epoch.users;
  epoch.passed |= answer == CUDA_SUCCESS;
}

// A slice at a time, so that a free on another thread never waits for a whole epoch.
bool Quarantine::reclaim_slice(Cleaned &cleaned, bool &outstanding) {
  Fence over;
  {
    Guard guard(mutex_);
    outstanding = false;
    auto epoch = sealed_.begin();
    for (;; ++epoch) {
      if (epoch == sealed_.end()) {
        return false;
      }
      if (!epoch->passed) {
        continue;
      }
      const auto ready = std::find_if(epoch->batches.begin(), epoch->batches.end(), [](const Batch &batch) {
        return batch.unrecorded.load(std::memory_order_acquire) == 0;
      });
      if (ready != epoch->batches.end()) {
        const std::size_t left = ready->count - std::min(ready->count, kSliceBlocks);
        release(&ready->entries[left], ready->count - left, cleaned);
        ready->count = left;
        if (ready->count == 0) {
          spare_batches_.splice(spare_batches_.end(), epoch->batches, ready);
        }
        return true;
      }
      if (epoch->batches.empty() && epoch->users == 0) {
        break;
      }
      outstanding |= !epoch->batches.empty();
    }
    over = std::exchange(epoch->moment, {});
    epoch->passed = false;
    spare_epochs_.splice(spare_epochs_.end(), sealed_, epoch);
  }
  fences_.recycle(over);
  return true;
}

// The pool's lock is taken once for as many neighbours as are its own: mostly all.
void Quarantine::release(const Entry *entries, std::size_t count, Cleaned &cleaned) {
  std::array<pool::Address, kSliceBlocks> addresses;
  for (std::size_t begin = 0, end = 0; begin < count; begin = end) {
    ContextPool &pool = *entries[begin].pool;
    for (; end < count && end - begin < addresses.size() && entries[end].pool == &pool; ++end) {
      addresses[end - begin] = entries[end].address;
    }
    const std::size_t blocks = end - begin;
    const std::uint64_t bytes = pool.blocks.reclaim(addresses.data(), blocks).bytes;
    bytes_.fetch_sub(bytes, std::memory_order_relaxed);
    blocks_.fetch_sub(blocks, std::memory_order_relaxed);
    cleaned_.fetch_add(blocks, std::memory_order_relaxed);
    cleaned.bytes += bytes;
    cleaned.blocks += blocks;
  }
}

Quarantine::Cleaned Quarantine::collect(Sealing sealing) noexcept {
  Cleaned cleaned;
  if (is_empty()) {
    return cleaned;
  }
  const CaptureExclusion undisturbed(fences_.captures());
  if (sealing == Sealing::worthwhile) {
    ask_about_all(cleaned);
    if (cleaned.blocks > 0 || !worth_sealing()) {
      return cleaned;
    }
  }
  try {
    seal(cleaned);
  } catch (...) {  // no memory of the host for an epoch: it stays open
    cleaned.error = CUDA_ERROR_OUT_OF_MEMORY;
  }
  ask_about_all(cleaned);
  return cleaned;
}

void Quarantine::ask_about_all(Cleaned &cleaned) {
  CUresult answer = CUDA_SUCCESS;
  while (answer == CUDA_SUCCESS) {
    Epoch *epoch = oldest_not_passed(UINT64_MAX);
    if (epoch == nullptr) {
      break;
    }
    answer = fences_.query(epoch->moment);
    note_answer(*epoch, answer, cleaned);
  }
  bool outstanding = false;
  while (reclaim_slice(cleaned, outstanding)) {
  }
}

// Waits for an epoch that the caller uses, and takes part in reclaiming it.
void Quarantine::wait_for(Epoch &epoch, Cleaned &cleaned) {
  cleaned.waited = true;
  const CUresult answer = fences_.wait(epoch.moment);
  note_answer(epoch, answer, cleaned);
  cleaned.capturing |= answer == CUDA_ERROR_NOT_READY;
  cleaned.others_cleaned |= answer == CUDA_SUCCESS;  // if not we
  for (bool outstanding = true; outstanding;) {
    Waiter waiter;
    while (reclaim_slice(cleaned, outstanding)) {
    }
    if (outstanding) {
      waiter.pause();  // another thread is writing the record of a free that is in there
    }
  }
}

// Of open blocks and of epochs, also of those that are only waiting to be recycled.
bool Quarantine::is_empty() {
  Guard guard(mutex_);
  gather();
  return open_blocks_ == 0 && sealed_.empty();
}

// Never past what other threads have given back since the caller last looked into its pool: the epoch behind it may be
// one that does not end before the caller is served.
Quarantine::Cleaned Quarantine::wait(std::uint64_t seen) noexcept {
  for (Waiter waiter;;) {
    Cleaned cleaned = collect(Sealing::always);
    if (cleaned.blocks > 0 || cleaned.error != CUDA_SUCCESS) {
      return cleaned;
    }
    Epoch *oldest = nullptr;
    switch (choose(seen, oldest)) {
      case Choice::look_again:
        cleaned.others_cleaned = true;
        return cleaned;
      case Choice::wait:
        wait_for(*oldest, cleaned);
        grow_coarser();
        return cleaned;
      case Choice::nothing:
        if (!cleaned.ending) {
          return cleaned;
        }
        break;
      case Choice::in_other_hands:
        break;
    }
    waiter.pause();
  }
}

Quarantine::Choice Quarantine::choose(std::uint64_t seen, Epoch *&oldest) {
  Guard guard(mutex_);
  if (cleaned_.load(std::memory_order_relaxed) != seen) {
    return Choice::look_again;
  }
  for (Epoch &epoch : sealed_) {
    if (epoch.passed) {
      return Choice::in_other_hands;  // its blocks, or what is left of it, are about to be given back
    }
    ++epoch.users;
    oldest = &epoch;
    return Choice::wait;
  }
  return sealing_ > 0 ? Choice::in_other_hands : Choice::nothing;
}

// A program that has to wait is bound by the device: fewer and longer waits are all that is left to win.
void Quarantine::grow_coarser() {
  Guard guard(mutex_);
  coarseness_ = std::min(coarseness_ + 1, kCoarsest);
  publish_due();
}

Quarantine::Cleaned Quarantine::drain() noexcept {
  Cleaned cleaned;
  for (Waiter waiter;;) {
    cleaned.ending = false;
    const Cleaned now = collect(Sealing::always);
    cleaned.blocks += now.blocks;
    cleaned.bytes += now.bytes;
    cleaned.error = now.error;
    cleaned.capturing = now.capturing;
    if (now.error != CUDA_SUCCESS || now.capturing) {
      return cleaned;
    }
    if (!now.ending && !sealing()) {
      break;
    }
    waiter.pause();
  }
  const std::uint64_t last = fences_.now();
  while (cleaned.error == CUDA_SUCCESS && !cleaned.capturing) {
    Epoch *epoch = oldest_not_passed(last);
    if (epoch == nullptr) {
      break;
    }
    wait_for(*epoch, cleaned);
  }
  return cleaned;
}

bool Quarantine::worth_sealing() {
  Guard guard(mutex_);
  return sealed_.empty() || open_blocks_ >= kBatchBlocks / 4 || open_bytes_ >= finest_bytes_ / 4;
}

bool Quarantine::sealing() {
  Guard guard(mutex_);
  return sealing_ > 0;
}

void Quarantine::forget_in(std::list<Batch> &batches, const ContextPool &pool, Cleaned &cleaned) {
  for (Batch &batch : batches) {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < batch.count; ++i) {
      if (batch.entries[i].pool == &pool) {
        release(&batch.entries[i], 1, cleaned);
      } else {
        batch.entries[kept++] = batch.entries[i];
      }
    }
    batch.count = kept;
  }
}

// What could not be gathered, for want of the host's memory.
void Quarantine::reclaim_kept(ContextPool &pool) noexcept {
  if (FastPath *path = pool.claim.path()) {
    path->hand_over(device_, [](ContextPool &owner, const pool::Address *addresses, std::size_t count, std::uint64_t) {
      owner.blocks.assert_locked();
      for (std::size_t i = 0; i < count; ++i) {
        (void)owner.blocks.reclaim_locked(addresses[i]);
      }
    });
  }
}

void Quarantine::forget(ContextPool &pool) noexcept {
  for (Waiter waiter;;) {
    {
      Guard guard(mutex_);
      pool.closed.store(true, std::memory_order_relaxed);
      gather();
      reclaim_kept(pool);
      if (sealing_ == 0) {  // else some batches are in another thread's hands for the moment
        Cleaned open;
        forget_in(open_, pool, open);
        open_blocks_ -= open.blocks;
        open_bytes_ -= open.bytes;
        publish_due();
        Cleaned sealed;
        for (Epoch &epoch : sealed_) {
          forget_in(epoch.batches, pool, sealed);
        }
        return;
      }
    }
    waiter.pause();
  }
}

}  // namespace ration::policy
