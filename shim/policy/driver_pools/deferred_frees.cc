#include "policy/driver_pools/deferred_frees.h"

#include <iterator>
#include <utility>

namespace ration::policy {
namespace {

DeferredSize size_of(const DeferredFrees::Items &blocks) {
  DeferredSize size;
  for (const DeferredBlock &block : blocks) {
    size.add({1, block.bytes});
  }
  return size;
}

}  // namespace

bool DeferredFrees::add(const DeferredBlock &block) noexcept try {
  Items one{block};
  Guard guard(mutex_);
  held_.emplace(block.address, block.bytes);
  open_.splice(open_.end(), one);
  note_added({1, block.bytes});
  return true;
} catch (...) {
  return false;
}

bool DeferredFrees::is_worth_collecting(std::uint64_t most_bytes) {
#ifdef RATION_BREAK_QUARANTINE  // as in quarantine.cc
  return most_bytes > 0;
#endif
  Guard guard(mutex_);
  return open_size_.blocks >= kMostOpenBlocks || open_size_.bytes >= most_bytes;
}

bool DeferredFrees::covers(CUdeviceptr address) {
  if (blocks() == 0) {
    return false;
  }
  Guard guard(mutex_);
  const auto after = held_.upper_bound(address);
  return after != held_.begin() && address - std::prev(after)->first < std::prev(after)->second;
}

bool DeferredFrees::reclaim(Items &items, Cleaned &cleaned) {
  const DeferredSize size = size_of(items);
  in_hands_.fetch_add(size.blocks);
  cleaned.add(size);
  cleaned.items.splice(cleaned.items.end(), items);
  return true;
}

DeferredFrees::Held DeferredFrees::begin_return(const DeferredBlock &block) noexcept {
  Guard guard(mutex_);
  return held_.extract(block.address);
}

void DeferredFrees::finish_return(const DeferredBlock &block, Held held, bool returned) noexcept {
  if (returned) {
    note_reclaimed({1, block.bytes});
    in_hands_.fetch_sub(1);
  } else {
    Guard guard(mutex_);
    held_.insert(std::move(held));
  }
  wake_waiters();
}

void DeferredFrees::keep(Items &blocks) noexcept {
  const DeferredSize size = size_of(blocks);
  Guard guard(mutex_);
  reopen(blocks, size);
  in_hands_.fetch_sub(size.blocks);
  wake_waiters();
}

}  // namespace ration::policy
