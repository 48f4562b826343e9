#include "logs/replay/granule_arena.h"

#include <algorithm>
#include <ostream>

#include "logs/replay/granule_costs.h"
#include "pool/stitch/sizes.h"

namespace ration::pool::replay {
namespace {

// Arbitrary addresses; the views' are above the home range's.

}  // namespace

GranuleArena::GranuleArena(std::uint64_t bytes)
    : bytes_(bytes / kPageBytes * kPageBytes), free_{{0, bytes / kPageBytes}}, free_pages_(bytes / kPageBytes) {}

std::uint64_t GranuleArena::page_of(const std::vector<Run> &runs, std::uint64_t page) {
  auto run = runs.begin();
  for (; page >= run->count; ++run) page -= run->count;
  return run->first + page;
}

void GranuleArena::preallocate(SharedPool &pool) {
  if (!pool.stitch_from({.page_bytes = kPageBytes,
                         .home = kHome,
                         .home_bytes = stitch::home_bytes(bytes_, kPageBytes),
                         .views = kViews,
                         .views_bytes = kViewsBytes,
                         .slab = 1})) {
    throw TraceError("no addresses for an arena of " + std::to_string(bytes_) + " bytes in granules");
  }
  for (const std::uint64_t bytes : stitch::preallocation_sizes(bytes_, kPageBytes)) {
    if (const std::optional<std::uint64_t> handle = create(bytes)) (void)pool.add_granule(*handle, bytes, *this);
  }
}

void GranuleArena::write_pages(std::ostream &out, const SharedPool &pool, const Block &block) const {
  std::uint64_t left = block.requested;
  for (const stitch::Stitcher::Backing &each : pool.backing(block)) {
    if (left == 0) break;
    out << ' ' << page_of(handles_.at(each.handle), each.page);
    const std::uint64_t bytes = std::min(left, each.bytes);
    if (bytes != kPageBytes) out << ':' << each.offset;
    left -= bytes;
  }
}

std::optional<std::uint64_t> GranuleArena::create(std::uint64_t bytes) noexcept {
  if (bytes == 0 || bytes % kPageBytes != 0 || bytes > free_pages_ * kPageBytes) return std::nullopt;
  std::vector<Run> &runs = handles_[++last_handle_];
  for (std::uint64_t left = bytes / kPageBytes; left != 0;) {
    Run &next = free_.back();
    const std::uint64_t count = std::min(left, next.count);
    runs.push_back({next.first, count});
    left -= count;
    next = {next.first + count, next.count - count};
    if (next.count == 0) free_.pop_back();
  }
  free_pages_ -= bytes / kPageBytes;
  ++calls_.create;
  calls_.us += costs::kCreateUs * costs::factor(bytes);
  return last_handle_;
}

void GranuleArena::release(std::uint64_t handle, std::uint64_t bytes) noexcept {
  const auto at = handles_.find(handle);
  free_.insert(free_.end(), at->second.begin(), at->second.end());
  free_pages_ += bytes / kPageBytes;
  handles_.erase(at);
  ++calls_.release;
  calls_.us += costs::kReleaseUs * costs::factor(bytes);
}

bool GranuleArena::map(Address address, std::uint64_t handle, std::uint64_t bytes) noexcept {
  std::uint64_t pages = 0;
  for (const Run &run : handles_.at(handle)) pages += run.count;
  if (pages * kPageBytes != bytes || !mappings_.emplace(address, bytes).second) return false;
  ++calls_.map;
  calls_.us += costs::kMapUs * costs::factor(bytes);
  return true;
}

bool GranuleArena::allow(Address address, std::uint64_t bytes) noexcept {
  for (auto at = mappings_.find(address); at != mappings_.end() && at->first < address + bytes; ++at) {
    ++calls_.access;
    calls_.us += costs::kAccessUs * costs::factor(at->second);
  }
  return true;
}

bool GranuleArena::unmap(Address address, std::uint64_t bytes) noexcept {
  for (auto at = mappings_.find(address); at != mappings_.end() && at->first < address + bytes;) {
    ++calls_.unmap;
    calls_.us += costs::kUnmapUs * costs::factor(at->second);
    at = mappings_.erase(at);
  }
  return true;
}

std::vector<Slab> GranuleArena::grow(const GrowthWish &wish) noexcept {
  const std::optional<std::uint64_t> handle = create(wish.bytes);
  return handle ? std::vector<Slab>{{0, wish.bytes, *handle}} : std::vector<Slab>();
}

}  // namespace ration::pool::replay
