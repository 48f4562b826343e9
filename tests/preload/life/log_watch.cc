#include "tests/preload/life/log_watch.h"

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>

namespace preload {
namespace {

std::uint64_t address_of(const nlohmann::json &record) {
  return std::stoull(record["addr"].get<std::string>(), nullptr, 16);
}

LogWatch::Extent extent_of(const nlohmann::json &record) {
  return {rounded(record["size"]), record["dev"], record["ctx"], record.value("src", "") == "pool",
          record.value("backend", "") == "cuMemCreate"};
}

}  // namespace

void LogWatch::add(const nlohmann::json &record) {
  const std::string kind = record["t"];
  if (kind == "slab_alloc" || kind == "alloc") {
    const Extent extent = extent_of(record);
    (kind == "alloc" ? live_ : slabs_)[address_of(record)] = extent;
    held_[extent.device] += extent.pool ? 0 : extent.bytes;
  } else if (kind == "slab_free" || kind == "free") {
    Extents &extents = kind == "free" ? live_ : slabs_;
    const auto found = extents.find(address_of(record));
    if (found == extents.end()) {
      throw std::runtime_error("the log ends what it never began: " + record.dump());
    }
    held_[found->second.device] -= found->second.pool ? 0 : found->second.bytes;
    extents.erase(found);
  }
}

// An incomplete line is left for the next call. Blanks that were added after a line that was already read count as a
// line.
void LogWatch::follow() {
  if (!file_.is_open()) {
    file_.open(path_);
  }
  file_.clear();
  std::string line;
  for (auto at = file_.tellg(); std::getline(file_, line); at = file_.tellg()) {
    if (file_.eof()) {
      file_.clear();
      file_.seekg(at);
      return;
    }
    if (line.find_first_not_of(' ') != std::string::npos) {
      add(nlohmann::json::parse(line));
    }
  }
}

std::uint64_t LogWatch::held(int device) const {
  const auto found = held_.find(device);
  return found != held_.end() ? found->second : 0;
}

std::size_t LogWatch::of_driver() const {
  return static_cast<std::size_t>(
      std::count_if(live_.begin(), live_.end(), [](const auto &block) { return !block.second.pool; }));
}

std::uint64_t LogWatch::largest_hole(unsigned context) const {
  std::uint64_t largest = 0;
  for (const auto &[start, slab] : slabs_) {
    if (slab.context != context || slab.granule) {
      continue;
    }
    const std::uint64_t end = start + slab.bytes;
    std::uint64_t at = start;
    for (auto block = live_.lower_bound(start); block != live_.end() && block->first < end; ++block) {
      largest = std::max(largest, block->first - at);
      at = block->first + block->second.bytes;
    }
    largest = std::max(largest, end - at);
  }
  return largest;
}

std::uint64_t LogWatch::wholly_free(int device) const {
  std::uint64_t bytes = 0;
  std::uint64_t in_granules = 0;
  std::uint64_t in_blocks = 0;
  std::uint64_t largest = 0;
  for (const auto &[handle, granule] : slabs_) {
    largest = granule.granule && granule.device == device ? std::max(largest, granule.bytes) : largest;
  }
  for (const auto &[start, block] : live_) {
    in_blocks += block.device == device && block.pool ? block.bytes + 2 * largest : 0;
  }
  for (const auto &[start, slab] : slabs_) {
    if (slab.granule) {
      in_granules += slab.device == device ? slab.bytes : 0;
      continue;
    }
    const auto block = live_.lower_bound(start);
    const bool used = block != live_.end() && block->first < start + slab.bytes;
    bytes += slab.device == device && !used ? slab.bytes : 0;
  }
  return bytes + in_granules - std::min(in_granules, in_blocks);
}

bool LogWatch::has_granules(int device) const {
  return std::any_of(slabs_.begin(), slabs_.end(),
                     [&](const auto &slab) { return slab.second.granule && slab.second.device == device; });
}

}  // namespace preload
