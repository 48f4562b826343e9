#include "policy/driver_pools/deferred_frees.h"

#include <iterator>
#include <utility>

#include "policy/driver_pools/stream_pools.h"

namespace ration::policy {
namespace {

DeferredSize size_of(const DeferredFrees::Items &blocks) {
  DeferredSize size;
  for (const std::unique_ptr<Deferred> &block : blocks) {
    size.add({1, StreamPools::whole_units(DeferredBlock::of(block).bytes)});
  }
  return size;
}

}  // namespace

bool DeferredFrees::add(const DeferredBlock &block) noexcept try {
  Items one;
  one.push_back(std::make_unique<DeferredBlock>(block));
  Guard guard(mutex_);
  held_.emplace(block.address, block.bytes);
  open_.splice(open_.end(), one);
  note_added({1, StreamPools::whole_units(block.bytes)});
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
  if (blocks() == 0 && retained_bytes() == 0) {
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
    note_reclaimed({1, StreamPools::whole_units(block.bytes)});
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

bool DeferredFrees::retain(Items &clean) noexcept {
  DeferredSize size;
  try {
    Guard guard(mutex_);
    while (!clean.empty()) {
      const std::uint64_t bytes = DeferredBlock::of(clean.front()).bytes;
      Items &same = retained_[bytes];
      same.splice(same.end(), clean, clean.begin());
      size.add({1, StreamPools::whole_units(bytes)});
    }
  } catch (...) {  // no host memory: the rest will be returned
  }
  retained_bytes_.fetch_add(size.bytes, std::memory_order_relaxed);
  note_reclaimed(size);
  in_hands_.fetch_sub(size.blocks);
  wake_waiters();
  return clean.empty();
}

CUdeviceptr DeferredFrees::take_retained(std::uint64_t bytes) noexcept {
  if (retained_bytes() == 0) {
    return 0;
  }
  Guard guard(mutex_);
  const auto same = retained_.lower_bound(bytes);
  if (same == retained_.end() || StreamPools::whole_units(same->first) != StreamPools::whole_units(bytes)) {
    return 0;
  }
  const CUdeviceptr address = DeferredBlock::of(same->second.front()).address;
  held_.erase(address);
  retained_bytes_.fetch_sub(StreamPools::whole_units(bytes), std::memory_order_relaxed);
  same->second.pop_front();
  if (same->second.empty()) {
    retained_.erase(same);
  }
  return address;
}

DeferredFrees::Items DeferredFrees::release_retained() noexcept {
  Items all;
  Guard guard(mutex_);
  for (auto &[size, blocks] : retained_) {
    all.splice(all.end(), blocks);
  }
  retained_.clear();
  const DeferredSize size = size_of(all);
  retained_bytes_.fetch_sub(size.bytes, std::memory_order_relaxed);
  in_hands_.fetch_add(size.blocks);
  unreclaim(size);
  return all;
}

}  // namespace ration::policy
