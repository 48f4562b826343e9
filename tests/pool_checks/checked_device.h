// A device for pools of granules that checks how it is used. No mapping may overlap another one, map a released handle,
// or be removed while a block uses it, and two blocks may not share a byte of memory. It refuses calls on request, and
// never lacks host memory.
// Threads: any; one lock.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <iterator>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "fuzz/host_memory.h"
#include "pool/shared_pool.h"
#include "pool/stitch/sizes.h"

namespace ration::pool {

class CheckedDevice final : public Upstream, public stitch::DeviceMemory {
 public:
  static constexpr std::uint64_t kPage = std::uint64_t{2} << 20;
  static constexpr Address kHome = 0x100000000000;
  static constexpr Address kViews = 0x200000000000;
  static constexpr std::uint64_t kViewsBytes = std::uint64_t{1} << 40;

  explicit CheckedDevice(std::uint64_t pages) : pages_(pages), free_(pages) {}

  [[nodiscard]] stitch::Layout layout() const {
    return {.page_bytes = kPage,
            .home = kHome,
            .home_bytes = stitch::home_bytes(pages_ * kPage, kPage),
            .views = kViews,
            .views_bytes = kViewsBytes,
            .slab = 1,
            .granule_bytes = granule_bytes_};
  }
  // The device's granules have at most this many bytes, unless memory is short. To be called before layout().
  void provide_parts_of(std::uint64_t bytes) { granule_bytes_ = bytes; }
  // Gives the pool granules of `each` pages until it has `pages` pages.
  bool preallocate(SharedPool &pool, std::uint64_t pages, std::uint64_t each = 1) {
    for (std::uint64_t left = pages; left != 0; left -= std::min(each, left)) {
      const std::uint64_t bytes = std::min(each, left) * kPage;
      const std::optional<std::uint64_t> handle = create(bytes);
      if (!handle || !pool.add_granule(*handle, bytes, *this)) return false;
    }
    return true;
  }

  // --- what the test does with blocks ---

  // The program has received this block.
  void take(const Block &block) {
    const Turn turn(mutex_);
    Blocked &blocked = blocks_[block.address];
    blocked.bytes = block.bytes;
    for (Address at = block.address; at < block.address + block.bytes;) {
      const auto mapping = mapping_around(at);
      if (mapping == mappings_.end()) return note("a block is where nothing is mapped");
      if (!mapping->second.allowed) return note("a block is where there is no access");
      const std::uint64_t offset = at - mapping->first;
      const std::uint64_t bytes = std::min(mapping->second.bytes - offset, block.address + block.bytes - at);
      auto &used = used_[mapping->second.handle];
      const auto after = used.upper_bound(offset);
      if ((after != used.end() && after->first < offset + bytes) ||
          (after != used.begin() && std::prev(after)->second > offset)) {
        return note("two blocks have one byte of memory");
      }
      used[offset] = offset + bytes;
      blocked.parts.push_back({mapping->second.handle, offset});
      at += bytes;
    }
  }
  // The program is about to free or reclaim the block.
  void leave(Address address) {
    const Turn turn(mutex_);
    const auto block = blocks_.find(address);
    if (block == blocks_.end()) return note("the test left an unknown block");
    for (const auto &[handle, offset] : block->second.parts) used_[handle].erase(offset);
    blocks_.erase(block);
  }

  // --- what the test asks ---

  // The first misuse, or an empty string.
  [[nodiscard]] std::string wrong() const {
    const Turn turn(mutex_);
    return wrong_;
  }
  [[nodiscard]] std::uint64_t free_pages() const {
    const Turn turn(mutex_);
    return free_;
  }
  [[nodiscard]] std::uint64_t mappings() const {
    const Turn turn(mutex_);
    return mappings_.size();
  }
  // The number of calls so far that can be refused.
  [[nodiscard]] std::uint64_t calls() const {
    const Turn turn(mutex_);
    return calls_;
  }
  // From now on, the first `after` of these calls succeed, and the next `count` are refused.
  void refuse(std::uint64_t after, std::uint64_t count = 1) {
    const Turn turn(mutex_);
    refused_from_ = calls_ + after;
    refused_to_ = count > UINT64_MAX - refused_from_ ? UINT64_MAX : refused_from_ + count;
  }
  [[nodiscard]] std::uint64_t refused() const {
    const Turn turn(mutex_);
    return refused_;
  }
  // If false, grow() provides nothing, as for a pool that has reached its limit.
  void provide(bool provides) { provides_ = provides; }

  // --- DeviceMemory ---

  std::optional<std::uint64_t> create(std::uint64_t bytes) noexcept override {
    const Call call(*this);
    if (bytes == 0 || bytes % kPage != 0) note("a handle of no whole pages");
    if (refuses() || bytes / kPage > free_) return std::nullopt;
    free_ -= bytes / kPage;
    handles_[++last_] = {bytes, 0};
    return last_;
  }
  void release(std::uint64_t handle, std::uint64_t bytes) noexcept override {
    const Call call(*this);
    const auto at = handles_.find(handle);
    if (at == handles_.end()) return note("an unknown handle is released");
    if (at->second.bytes != bytes) note("a handle is released with another size");
    if (at->second.mapped != 0) return note("a handle is released that is mapped");
    free_ += bytes / kPage;
    handles_.erase(at);
  }
  bool map(Address address, std::uint64_t handle, std::uint64_t bytes) noexcept override {
    const Call call(*this);
    const auto at = handles_.find(handle);
    if (at == handles_.end()) note("an unknown handle is mapped");
    if (at == handles_.end() || at->second.bytes != bytes) return misused("a handle is mapped with another size");
    if (address % kPage != 0 || !is_reserved(address, bytes)) return misused("a mapping outside the reserved ranges");
    const auto after = mappings_.lower_bound(address + 1);
    if ((after != mappings_.end() && after->first < address + bytes) || mapping_around(address) != mappings_.end()) {
      return misused("a mapping over another");
    }
    if (refuses()) return false;
    mappings_[address] = {bytes, handle, false};
    ++at->second.mapped;
    return true;
  }
  bool allow(Address address, std::uint64_t bytes) noexcept override {
    const Call call(*this);
    if (!is_whole(address, bytes)) return misused("access for other than whole mappings");
    if (refuses()) return false;
    for (auto at = mappings_.find(address); at != mappings_.end() && at->first < address + bytes; ++at) {
      at->second.allowed = true;
    }
    return true;
  }
  bool unmap(Address address, std::uint64_t bytes) noexcept override {
    const Call call(*this);
    if (!is_whole(address, bytes)) return misused("other than whole mappings are taken away");
    const auto block = blocks_.lower_bound(address + bytes);
    if (block != blocks_.begin() && std::prev(block)->first + std::prev(block)->second.bytes > address) {
      return misused("a mapping is taken away below a block");
    }
    if (refuses()) return false;
    for (auto at = mappings_.find(address); at != mappings_.end() && at->first < address + bytes;) {
      --handles_[at->second.handle].mapped;
      at = mappings_.erase(at);
    }
    return true;
  }

  // --- Upstream ---

  stitch::DeviceMemory *memory() noexcept override { return this; }
  [[nodiscard]] std::uint64_t room() noexcept { return provides_ ? free_pages() * kPage : 0; }
  bool collect() noexcept override { return false; }
  std::vector<Slab> grow(const GrowthWish &wish) noexcept override {
    const host_memory::Limit plenty{host_memory::kPlenty};
    std::vector<Slab> granules;
    if (!provides_ || room() < wish.bytes) return granules;
    for (std::uint64_t left = wish.bytes; left != 0; left -= granules.back().bytes) {
      const std::uint64_t bytes = std::min(left, wish.piece_bytes);
      const std::optional<std::uint64_t> handle = create(bytes);
      if (!handle) {
        for (const Slab &each : granules) release(each.id, each.bytes);
        return {};
      }
      granules.push_back({0, bytes, *handle});
    }
    return granules;
  }
  void shrink(const Slab &slab) noexcept override { release(slab.id, slab.bytes); }
  bool wait() noexcept override { return false; }

 private:
  struct Turn {
    explicit Turn(std::mutex &mutex) : guard(mutex) {}
    std::lock_guard<std::mutex> guard;
    host_memory::Limit plenty{host_memory::kPlenty};
  };
  // At most one such call is in progress for each pool.
  struct Call {
    explicit Call(CheckedDevice &device) : device(device), is_alone(device.under_way_.fetch_add(1) == 0) {
      if (!is_alone) device.note("two threads call the driver at once");
    }
    Call(const Call &) = delete;
    Call &operator=(const Call &) = delete;
    ~Call() { device.under_way_.fetch_sub(1); }
    CheckedDevice &device;
    const bool is_alone;
    const Turn turn{device.mutex_};
  };
  struct Handle {
    std::uint64_t bytes;
    std::uint64_t mapped;  // number of places where it is mapped
  };
  struct Mapping {
    std::uint64_t bytes;
    std::uint64_t handle;
    bool allowed;
  };
  struct Part {
    std::uint64_t handle;
    std::uint64_t offset;
  };
  struct Blocked {
    std::uint64_t bytes;
    std::vector<Part> parts;
  };
  using Mappings = std::map<Address, Mapping>;

  void note(const char *wrong) {
    if (wrong_.empty()) wrong_ = wrong;
  }
  bool misused(const char *wrong) {
    note(wrong);
    return false;
  }
  bool refuses() {
    const bool refused = calls_ >= refused_from_ && calls_ < refused_to_;
    ++calls_;
    refused_ += refused ? 1 : 0;
    return refused;
  }
  [[nodiscard]] bool is_reserved(Address address, std::uint64_t bytes) const {
    const stitch::Layout known = layout();
    const auto is_in = [=](Address from, std::uint64_t size) {
      return address >= from && address + bytes <= from + size;
    };
    return is_in(known.home, known.home_bytes) || is_in(known.views, known.views_bytes);
  }
  [[nodiscard]] Mappings::const_iterator mapping_around(Address address) const {
    const auto after = mappings_.upper_bound(address);
    if (after == mappings_.begin()) return mappings_.end();
    const auto at = std::prev(after);
    return address - at->first < at->second.bytes ? at : mappings_.end();
  }
  [[nodiscard]] bool is_whole(Address address, std::uint64_t bytes) const {
    Address next = address;
    auto at = mappings_.find(address);
    for (; at != mappings_.end() && at->first == next && next < address + bytes; ++at) next += at->second.bytes;
    return bytes != 0 && next == address + bytes;
  }

  const std::uint64_t pages_;
  mutable std::mutex mutex_;
  std::atomic<int> under_way_ = 0;
  std::uint64_t free_;
  std::uint64_t granule_bytes_ = UINT64_MAX;
  bool provides_ = true;
  std::map<std::uint64_t, Handle> handles_;
  std::uint64_t last_ = 0;
  Mappings mappings_;
  std::map<Address, Blocked> blocks_;
  std::map<std::uint64_t, std::map<std::uint64_t, std::uint64_t>> used_;  // handle -> start -> end, under blocks
  std::uint64_t calls_ = 0;
  std::uint64_t refused_ = 0;
  std::uint64_t refused_from_ = UINT64_MAX;
  std::uint64_t refused_to_ = UINT64_MAX;
  std::string wrong_;
};

}  // namespace ration::pool
