#include "policy/calls/ending_ranges.h"

#include <algorithm>

#include "base/held.h"
#include "base/this_thread.h"
#include "base/wait.h"

namespace ration::policy {

EndingRanges::Ending::Ending(EndingRanges &ranges, std::uint64_t address, std::uint64_t bytes) noexcept {
  Guard guard(ranges.mutex_);
  const auto free = std::find_if(ranges.ranges_.begin(), ranges.ranges_.end(),
                                 [](const Range &range) { return range.ender == nullptr; });
  range_ = free != ranges.ranges_.end() ? &*free : nullptr;
  if (range_ != nullptr) {
    *range_ = {&ranges, this_thread(), address, bytes};
    ranges.count_.fetch_add(1, std::memory_order_relaxed);  // the driver's own locks order it before the next owner
    held::note(end, range_);
  }
}

EndingRanges::Ending::~Ending() {
  if (range_ != nullptr && held::forget(end, range_)) {
    end(range_);
  }
}

void EndingRanges::end(void *range) noexcept {
  auto *const ended = static_cast<Range *>(range);
  EndingRanges &owner = *ended->owner;
  Guard guard(owner.mutex_);
  ended->ender = nullptr;
  owner.count_.fetch_sub(1, std::memory_order_relaxed);
  wake_waiters();
}

bool EndingRanges::is_ending(std::uint64_t address, std::uint64_t bytes) noexcept {
  if (count_.load(std::memory_order_relaxed) == 0) {
    return false;
  }
  Guard guard(mutex_);
  return std::any_of(ranges_.begin(), ranges_.end(), [&](const Range &range) {
    return range.ender != nullptr && range.ender != this_thread() && range.address < address + bytes &&
           address < range.address + range.bytes;
  });
}

void EndingRanges::wait_for(std::uint64_t address, std::uint64_t bytes) noexcept {
  wait_until([&] { return !is_ending(address, bytes); });
}

}  // namespace ration::policy
