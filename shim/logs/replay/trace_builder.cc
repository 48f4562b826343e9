#include <algorithm>
#include <utility>

#include "logs/replay/trace.h"
#include "pool/unit.h"

namespace ration::pool::replay {

const char *TraceBuilder::allocate(std::uint64_t name, std::uint64_t bytes) {
  if (bytes == 0) return "has no bytes";
  if (bytes > kMaximumBytes) return "is larger than 256 TiB";
  if (bytes > kMaximumBytes - bytes_) return "makes more than 256 TiB live at once";
  const auto [entry, is_new] = ids_.emplace(name, trace_.ids);
  const std::uint32_t id = entry->second;
  if (is_new) {
    ++trace_.ids;
    trace_.names.push_back(name);
    live_.push_back(0);
  }
  if (live_[id] != 0) return "is already live";
  live_[id] = bytes;
  bytes_ += bytes;
  trace_.peak_bytes = std::max(trace_.peak_bytes, bytes_);
  trace_.peak_live = std::max(trace_.peak_live, ++blocks_);
  trace_.operations.push_back({id, false, bytes});
  return nullptr;
}

const char *TraceBuilder::free(std::uint64_t name) {
  const auto entry = ids_.find(name);
  if (entry == ids_.end() || live_[entry->second] == 0) return "is not live";
  bytes_ -= std::exchange(live_[entry->second], 0);
  --blocks_;
  trace_.operations.push_back({entry->second, true, 0});
  return nullptr;
}

Trace TraceBuilder::take() {
  return std::exchange(*this, {}).trace_;
}

}  // namespace ration::pool::replay
