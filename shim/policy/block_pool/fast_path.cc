#include "policy/block_pool/fast_path.h"

#include "policy/block_pool/context_pool.h"

namespace ration::policy {

bool FastPath::allocate(CUcontext handle, std::uint64_t bytes, events::Journal &journal,
                        std::uint64_t &address) noexcept {
  const pool::Guard guard(mutex_);
  if (!serves(handle)) {
    return false;
  }
  pool::SharedPool &blocks = pool_->blocks;
  blocks.assert_locked();
  const pool::AllocateOutcome outcome = blocks.allocate_locked(bytes);
  if (!outcome) {
    return false;
  }
  // Under the lock: whoever closes the fast path finds every block that was taken here in the totals.
  journal.count_pool_alloc(device_.load(std::memory_order_relaxed), outcome.block.bytes);
  address = outcome.block.address;
  return true;
}

FastPath::Freed FastPath::free(CUcontext handle, std::uint64_t address, events::Journal &journal,
                               [[maybe_unused]] std::uint64_t most, int &device) noexcept {
  const pool::Guard guard(mutex_);
  const std::uint32_t count = count_.load(std::memory_order_relaxed);
  if (!serves(handle) || count == kMostFreed) {
    return Freed::no;
  }
  if (pool_->shared.load() != 0) {
    return Freed::no;  // this may be the block that others have open
  }
  pool::SharedPool &blocks = pool_->blocks;
  blocks.assert_locked();
#ifdef RATION_BREAK_QUARANTINE  // as in quarantine.cc
  const pool::FreeOutcome outcome = blocks.free_locked(address);
#else
  const pool::FreeOutcome outcome = blocks.retire_locked(address, most);
#endif
  if (!outcome) {
    return Freed::no;  // another pool's, nobody's, or too large
  }
  device = device_.load(std::memory_order_relaxed);
  journal.count_pool_free(device, outcome.bytes);
#ifdef RATION_BREAK_QUARANTINE
  return Freed::freed;
#endif
  freed_[count] = address;
  count_.store(count + 1, std::memory_order_relaxed);
  bytes_ += outcome.bytes;
  const bool due =
      count + 1 >= due_blocks_.load(std::memory_order_relaxed) || bytes_ >= due_bytes_.load(std::memory_order_relaxed);
  return due ? Freed::due : Freed::freed;
}

void FastPath::close() noexcept {
  const pool::Guard guard(mutex_);
  handle_.store(nullptr, std::memory_order_relaxed);
}

FastPaths::Claim::Claim(FastPaths &fast_paths, CUcontext handle, int device) : fast_paths_(&fast_paths) {
  auto room = std::make_unique<pool::Address[]>(FastPath::kMostFreed);
  for (unsigned way = 0; way < kWays; ++way) {
    const unsigned index = (first_of(handle) + way) % kLanes;
    const std::uint64_t bit = std::uint64_t{1} << index;
    if ((fast_paths.claimed_.fetch_or(bit) & bit) == 0) {
      path_ = &fast_paths.fast_paths_[index];
      const pool::Guard guard(path_->mutex_);
      path_->device_.store(device);
      path_->freed_.swap(room);
      path_->set_due(1, 1);  // the first free asks the quarantine
      return;
    }
  }
}

// What is still kept is the quarantine's no more: its pool has gone, with the context that the device is through with.
FastPaths::Claim::~Claim() {
  if (path_ == nullptr) {
    return;
  }
  {
    const pool::Guard guard(path_->mutex_);
    path_->handle_.store(nullptr, std::memory_order_relaxed);
    path_->device_.store(-1, std::memory_order_relaxed);
    path_->pool_ = nullptr;
    path_->count_.store(0, std::memory_order_relaxed);
    path_->bytes_ = 0;
  }
  const auto index = static_cast<unsigned>(path_ - fast_paths_->fast_paths_);
  fast_paths_->claimed_.fetch_and(~(std::uint64_t{1} << index));
}

// Handles are small numbers or addresses: their low and their high bits say little, the middle of a product enough.
unsigned FastPaths::first_of(CUcontext handle) {
  const auto number = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(handle));
  return static_cast<unsigned>((number * 0x9e3779b97f4a7c15U) >> 58U) % kLanes;
}

FastPath *FastPaths::find(CUcontext handle) {
  const unsigned first = first_of(handle);
  for (unsigned way = 0; way < kWays; ++way) {
    FastPath &path = fast_paths_[(first + way) % kLanes];
    if (path.serves(handle)) {
      return &path;
    }
  }
  return nullptr;
}

void FastPaths::close_all(int device) noexcept {
  each_of(device, [](FastPath &path) { path.close(); });
}

}  // namespace ration::policy
