#include "policy/block_pool/slab_directory.h"

#include <algorithm>

#include "base/this_thread.h"
#include "base/wait.h"

namespace ration::policy {
std::vector<SlabDirectory::Slab>::iterator SlabDirectory::first_after(std::uint64_t address) {
  return std::upper_bound(slabs_.begin(), slabs_.end(), address,
                          [](std::uint64_t at, const Slab &slab) { return at < slab.end; });
}

bool SlabDirectory::insert(std::uint64_t address, std::uint64_t bytes, const ContextRef &context) {
  wait_for_ends(address, bytes);
  Guard guard(mutex_);
  const auto place = first_after(address);
  // If the driver gives out a range that is still entered, the slab there ended in a way that we did not see.
  const auto last =
      std::find_if(place, slabs_.end(), [&](const Slab &slab) { return slab.address >= address + bytes; });
  // If another context has the range now, while this one is being destroyed, the destruction has released this slab.
  if (context->ended_by.load(std::memory_order_acquire) != nullptr || (place != last && context->is_ending())) {
    return false;
  }
  if (place != last) {
    *place = {address, address + bytes, context, nullptr};
    slabs_.erase(place + 1, last);
  } else {
    slabs_.insert(place, {address, address + bytes, context, nullptr});
  }
  count_.store(slabs_.size(), std::memory_order_relaxed);
  return true;
}

void SlabDirectory::erase(std::uint64_t address, const Context &context) {
  Guard guard(mutex_);
  const auto place = first_after(address);
  if (place != slabs_.end() && place->address == address && place->context.get() == &context) {
    slabs_.erase(place);
    wake_waiters();
  }
  count_.store(slabs_.size(), std::memory_order_relaxed);
}

void SlabDirectory::wait_for_ends(std::uint64_t address, std::uint64_t bytes) {
  Waiter waiter;
  while (count_.load(std::memory_order_relaxed) != 0) {
    {
      Guard guard(mutex_);
      const auto place = first_after(address);
      const bool ending = std::any_of(place, slabs_.end(), [&](const Slab &slab) {
        return slab.address < address + bytes && slab.ender != nullptr && slab.ender != this_thread();
      });
      if (!ending) {
        return;
      }
    }
    waiter.pause();
  }
}

ContextRef SlabDirectory::owner_of(std::uint64_t address) {
  Waiter waiter;
  while (count_.load(std::memory_order_relaxed) != 0) {
    {
      Guard guard(mutex_);
      const auto place = first_after(address);
      if (place == slabs_.end() || place->address > address || place->ender == this_thread()) {
        return nullptr;
      }
      if (place->ender == nullptr) {
        return place->context;
      }
    }
    waiter.pause();  // the other thread is inside the driver's call
  }
  return nullptr;
}

int SlabDirectory::device_at(std::uint64_t address) {
  if (count_.load(std::memory_order_relaxed) == 0) {
    return -1;
  }
  Guard guard(mutex_);
  const auto place = first_after(address);
  return place != slabs_.end() && place->address <= address ? place->context->device : -1;
}

void SlabDirectory::begin_end(const ContextRef &context) noexcept {
  Guard guard(mutex_);
  for (Slab &slab : slabs_) {
    if (slab.context == context && slab.ender == nullptr) {
      slab.ender = this_thread();
    }
  }
}

void SlabDirectory::cancel_end(const ContextRef &context) noexcept {
  Guard guard(mutex_);
  for (Slab &slab : slabs_) {
    if (slab.context == context && slab.ender == this_thread()) {
      slab.ender = nullptr;
      wake_waiters();
    }
  }
}

void SlabDirectory::set_ender(std::uint64_t address, const void *ender) noexcept {
  Guard guard(mutex_);
  const auto place = first_after(address);
  if (place != slabs_.end() && place->address == address) {
    place->ender = ender;
  }
}

void SlabDirectory::begin_end(std::uint64_t address) noexcept {
  set_ender(address, this_thread());
}

void SlabDirectory::cancel_end(std::uint64_t address) noexcept {
  set_ender(address, nullptr);
}

}  // namespace ration::policy
