#include "logs/replay/replayed_device.h"

#include <algorithm>
#include <utility>

#include "logs/replay/granule_arena.h"
#include "pool/stitch/sizes.h"
#include "pool/unit.h"

namespace ration::pool::replay {
namespace {

constexpr std::uint64_t kPageBytes = GranuleArena::kPageBytes;
constexpr std::uint64_t kPreallocateAfter = std::uint64_t{32} << 20;  // the setting's default
constexpr std::uint64_t kLeastHeadroom = std::uint64_t{512} << 20;    // likewise; or 2 % of what is free
constexpr Address kSlabs = 0x100000000000;                            // arbitrary
// As in policy/block_pool: seal_pace.h and quarantine.cc; pool_bounds.h; growth_size.cc; granule_backing.cc; room.h.
constexpr std::uint64_t kLargeParts = 64;
constexpr std::size_t kEpochBlocks = 1024, kSliceBlocks = 64;
constexpr std::uint64_t kFewParts = 128;
constexpr std::uint64_t kLargestGrowthParts = 16;
constexpr std::uint64_t kGifts = 16, kLeastGift = std::uint64_t{32} << 20;
constexpr int kRetries = 20;

}  // namespace

class ReplayedDevice::Memory final : public stitch::DeviceMemory {
 public:
  explicit Memory(ReplayedDevice &device) : device_(device) {}
  std::optional<std::uint64_t> create(std::uint64_t bytes) noexcept override {
    const std::vector<Slab> taken = device_.take(bytes, bytes);
    return taken.empty() ? std::nullopt : std::optional(taken.front().id);
  }
  void release(std::uint64_t, std::uint64_t bytes) noexcept override { device_.release(bytes); }
  bool map(Address, std::uint64_t, std::uint64_t) noexcept override { return true; }
  bool allow(Address, std::uint64_t) noexcept override { return true; }
  bool unmap(Address, std::uint64_t) noexcept override { return true; }

 private:
  ReplayedDevice &device_;
};

// As policy/block_pool/growth.cc and cleaning.cc.
class ReplayedDevice::Growth final : public Upstream {
 public:
  Growth(ReplayedDevice &device, SharedPool &pool, std::uint64_t bytes)
      : device_(device), pool_(pool), bytes_(bytes), lacking_(Pool::slab_bytes_for(bytes)) {}

  // True if the pools of other contexts hold enough that is free, but in pieces that hold blocks.
  [[nodiscard]] bool is_free_elsewhere() const { return is_free_elsewhere_; }

  stitch::DeviceMemory *memory() noexcept override { return device_.memory_.get(); }
  bool collect() noexcept override {
    const bool may_grow = device_.available() >= std::max(Pool::slab_bytes_for(bytes_), kPageBytes);
    return !(may_grow && device_.freed_bytes_ + bytes_ <= device_.slack()) && device_.clean();
  }
  std::vector<Slab> grow(const GrowthWish &wish) noexcept override {
    if (wish.at_once && device_.available() < wish.bytes) return {};
    lacking_ = wish.bytes;
    std::vector<Slab> pieces = device_.take(device_.next_bytes(pool_, wish.bytes), wish.piece_bytes);
    if (pieces.empty()) pieces = device_.take(wish.bytes, wish.piece_bytes);
    if (pieces.empty() && device_.make_room(wish.bytes, &pool_)) pieces = device_.take(wish.bytes, wish.piece_bytes);
    is_free_elsewhere_ = pieces.empty() && device_.is_free_elsewhere(pool_, wish.bytes);
    return pieces;
  }
  void shrink(const Slab &piece) noexcept override { device_.release(piece.bytes); }
  bool wait() noexcept override {
    return device_.clean() || (++retries_ <= kRetries && device_.make_room(lacking_, &pool_));
  }

 private:
  ReplayedDevice &device_;
  SharedPool &pool_;
  const std::uint64_t bytes_;
  std::uint64_t lacking_;
  int retries_ = 0;
  bool is_free_elsewhere_ = false;
};

ReplayedDevice::ReplayedDevice(std::uint64_t limit, std::uint64_t total, Backing backing, std::uint32_t pools,
                               Reuse reuse)
    : limit_(limit),
      total_(total),
      granule_bytes_(stitch::granule_bytes(limit, kPageBytes)),
      in_slabs_(backing == Backing::slab),
      reuse_(reuse),
      memory_(std::make_unique<Memory>(*this)),
      next_address_(kSlabs) {
  for (std::uint32_t number = 1; number <= pools; ++number) {
    SharedPool &pool = *pools_.emplace_back(std::make_unique<SharedPool>());
    if (!in_slabs_) {
      (void)pool.stitch_from({.page_bytes = kPageBytes,
                              .home = GranuleArena::kHome,
                              .home_bytes = stitch::home_bytes(std::max(limit, total), kPageBytes),
                              .views = GranuleArena::kViews,
                              .views_bytes = GranuleArena::kViewsBytes,
                              .slab = number,
                              .granule_bytes = granule_bytes_});
    }
  }
}

ReplayedDevice::~ReplayedDevice() = default;

std::uint64_t ReplayedDevice::beyond_headroom(std::uint64_t free_bytes) {
  return free_bytes - std::min(free_bytes, std::max(kLeastHeadroom, free_bytes / 50));
}

// As policy/block_pool/growth_size.cc for granules.
std::uint64_t ReplayedDevice::next_bytes(SharedPool &pool, std::uint64_t minimum) const {
  const bool is_owed = !is_preallocated_ && &pool == pools_.front().get();
  if (in_slabs_ || is_owed) return minimum;
  const std::uint64_t doubled = std::min(pool.statistics().slab_bytes + kPageBytes, limit_ / kLargestGrowthParts);
  const std::uint64_t wanted = std::min(std::max(minimum, doubled), std::max(minimum, granule_bytes_));
  return (wanted + kPageBytes - 1) / kPageBytes * kPageBytes;
}

bool ReplayedDevice::is_free_elsewhere(const SharedPool &pool, std::uint64_t bytes) const {
  std::uint64_t elsewhere = 0;
  for (const auto &each : pools_) {
    if (each.get() != &pool) {
      const Statistics held = each->statistics();
      elsewhere += held.free_bytes + held.retired_bytes;
    }
  }
  return elsewhere > 0 && bytes <= available() + elsewhere;
}

std::vector<Slab> ReplayedDevice::take(std::uint64_t bytes, std::uint64_t piece_bytes) {
  if (!in_slabs_) bytes = bytes / kPageBytes * kPageBytes;
  if (bytes == 0 || bytes > available()) return {};
  charged_ += bytes;
  if (in_slabs_) return {{std::exchange(next_address_, next_address_ + bytes + kPageBytes), bytes, ++last_id_}};
  std::vector<Slab> pieces;
  for (std::uint64_t left = bytes; left != 0; left -= pieces.back().bytes) {
    pieces.push_back({0, std::min(left, piece_bytes), ++last_id_});
  }
  return pieces;
}

// Whether the free of a block makes freed memory clean now.
bool ReplayedDevice::is_due(SharedPool &pool, std::uint64_t bytes) const {
  std::uint64_t held = 0;
  for (const auto &each : pools_) held += each->statistics().slab_bytes;
  return reuse_ == Reuse::at_once || bytes >= limit_ / kLargeParts || freed_.size() >= kEpochBlocks ||
         freed_bytes_ >= std::max(held / 8, slack()) ||
         (!pool.may_serve(bytes) && available() < Pool::slab_bytes_for(bytes));
}

// In the order of the quarantine. False: there was nothing to clean.
bool ReplayedDevice::clean() {
  if (freed_.empty()) return false;
  for (std::size_t epoch = 0; epoch < freed_.size(); epoch += kEpochBlocks) {
    for (std::size_t end = std::min(epoch + kEpochBlocks, freed_.size()); end > epoch;) {
      const std::size_t begin = end - std::min(end - epoch, kSliceBlocks);
      for (std::size_t i = begin; i < end; ++i) (void)freed_[i].pool->reclaim(freed_[i].address);
      end = begin;
    }
  }
  freed_.clear();
  freed_bytes_ = 0;
  return true;
}

// What the pools other than `asking` can give back. A pool that asks keeps its granules.
std::uint64_t ReplayedDevice::returnable(const SharedPool *asking) const {
  std::uint64_t bytes = 0;
  for (const auto &pool : pools_) {
    if (in_slabs_) {
      bytes += pool->has_wholly_free_slab() ? pool->statistics().slab_bytes : 0;
    } else if (pool.get() != asking) {
      bytes += pool->gather_granules();
    }
  }
  return bytes;
}

void ReplayedDevice::give_back(std::uint64_t bytes, const SharedPool *asking) {
  std::uint64_t returned = 0;
  for (const auto &pool : pools_) {
    if (in_slabs_) {
      Growth releaser(*this, *pool, 0);
      pool->give_back(releaser);
      continue;
    }
    std::uint64_t wanted = pool.get() == asking ? 0 : bytes - std::min(bytes, returned);
    for (std::uint64_t part = 0, gone = 0; wanted != 0 && gone >= part; wanted -= std::min(wanted, gone)) {
      part = std::min(wanted, std::max(kLeastGift, wanted / kGifts));
      gone = pool->release_granules(part, *memory_);
      returned += gone;
    }
  }
}

bool ReplayedDevice::make_room(std::uint64_t bytes, const SharedPool *asking) {
  if (available() >= bytes) return true;
  (void)clean();
  if (bytes > limit_ || available() + returnable(asking) < bytes) return false;
  give_back(bytes, asking);
  return available() >= bytes;
}

void ReplayedDevice::preallocate(SharedPool &pool, std::uint64_t bytes) {
  is_preallocated_ = true;
  if (in_slabs_) {
    const std::uint64_t room = available() / kUnitBytes * kUnitBytes;
    for (const Slab &slab : take(room, room)) (void)pool.add_slab(slab);
    return;
  }
  (void)clean();
  give_back(UINT64_MAX, &pool);
  const std::uint64_t room =
      std::min(available(), total_ == 0 ? UINT64_MAX : beyond_headroom(total_ - std::min(total_, charged_)));
  if (room < std::max(Pool::slab_bytes_for(bytes), kPageBytes)) return;
  for (const std::uint64_t each : stitch::preallocation_sizes(room, kPageBytes, granule_bytes_)) {
    for (const Slab &piece : take(each, each)) (void)pool.add_granule(piece.id, piece.bytes, *memory_);
  }
}

std::optional<ReplayedDevice::Block> ReplayedDevice::take_from_driver(std::uint64_t bytes) {
  const std::uint64_t charged = charged_for(bytes, available(), limit_);
  if (!make_room(charged, nullptr)) return std::nullopt;
  charged_ += charged;
  return Block{charged, 0};
}

std::optional<ReplayedDevice::Block> ReplayedDevice::allocate(std::uint32_t number, std::uint64_t bytes) {
  SharedPool &pool = *pools_[number];
  const Statistics held = pool.statistics();
  if (number == 0 && !is_preallocated_ && (in_slabs_ || held.used_bytes + bytes >= kPreallocateAfter)) {
    preallocate(pool, bytes);
  }
  // Placed next to what was freed, a large block would leave too little for the next one.
  if (bytes >= limit_ / kFewParts && held.used_bytes == 0 && held.largest_hole >= bytes) (void)clean();
  Growth growth(*this, pool, bytes);
  if (const AllocateOutcome outcome = pool.allocate(bytes, growth)) return Block{0, outcome.block.address};
  if (growth.is_free_elsewhere()) return std::nullopt;
  const bool no_slab_ever = !in_slabs_ || Pool::slab_bytes_for(bytes) > limit_;
  if (bytes > available() && !(no_slab_ever && make_room(bytes, nullptr))) return std::nullopt;
  return take_from_driver(bytes);
}

void ReplayedDevice::free(std::uint32_t number, const Block &block) {
  if (block.address == 0) {
    charged_ -= block.bytes;
    return;
  }
  SharedPool &pool = *pools_[number];
  const FreeOutcome outcome = pool.retire(block.address);
  freed_.push_back({&pool, block.address});
  freed_bytes_ += outcome.bytes;
  if (is_due(pool, outcome.bytes)) (void)clean();
}

bool ReplayedDevice::set_other(std::uint64_t bytes) {
  if (bytes > other_ && !make_room(bytes - other_, nullptr)) return false;
  charged_ = charged_ - other_ + bytes;
  other_ = bytes;
  return true;
}

std::uint64_t charged_for(std::uint64_t bytes, std::uint64_t left, std::uint64_t limit) {
  const std::uint64_t most = left >= bytes ? left : limit;
  const std::uint64_t whole = std::max(bytes, (bytes + kUnitBytes - 1) / kUnitBytes * kUnitBytes);
  const bool is_last = bytes >= kUnitBytes || bytes == most;
  return is_last ? std::min(whole, std::max(bytes, most)) : whole;
}

}  // namespace ration::pool::replay
