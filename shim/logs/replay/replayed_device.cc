#include "logs/replay/replayed_device.h"

#include <algorithm>
#include <utility>

#include "logs/replay/granule_arena.h"
#include "pool/growth_size.h"
#include "pool/merged_bytes.h"
#include "pool/stitch/sizes.h"
#include "pool/unit.h"

namespace ration::pool::replay {
namespace {

constexpr std::uint64_t kPageBytes = GranuleArena::kPageBytes;
constexpr std::uint64_t kPreallocateAfter = std::uint64_t{32} << 20;  // the setting's default
constexpr std::uint64_t kLeastHeadroom = std::uint64_t{512} << 20;    // likewise; or 2 % of what is free
constexpr Address kSlabs = 0x100000000000;                            // arbitrary
// As in policy/block_pool: seal_pace.h and quarantine.cc; pool_bounds.h; granule_backing.cc; room.h.
constexpr std::uint64_t kLargeParts = 64;
constexpr std::size_t kEpochBlocks = 1024, kSliceBlocks = 64;
constexpr std::uint64_t kFewParts = 128;
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

class ReplayedDevice::Releaser : public NoUpstream {
 public:
  explicit Releaser(ReplayedDevice &device) : device_(device) {}
  void shrink(const Slab &slab) noexcept override { device_.release(slab.bytes); }

 protected:
  ReplayedDevice &device_;
};

// As policy/block_pool/slab_merger.cc.
class ReplayedDevice::Merging final : public Releaser {
 public:
  Merging(ReplayedDevice &device, std::uint64_t least, std::uint64_t expected, std::uint64_t merged)
      : Releaser(device), least_(least), expected_(expected), merged_(merged) {}
  std::vector<Slab> grow(const GrowthWish &released) noexcept override {
    const std::uint64_t most = released.bytes == expected_ ? merged_ : released.bytes;
    for (std::uint64_t bytes = most; bytes >= least_; bytes = whole_units(nine_tenths(bytes))) {
      if (std::vector<Slab> taken = device_.take(bytes, bytes); !taken.empty()) return taken;
    }
    return {};
  }

 private:
  const std::uint64_t least_, expected_, merged_;
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
    const bool may_grow = device_.available() >= std::max(Pool::slab_bytes_for(bytes_), kFirstSlabBytes);
    return !(may_grow && device_.freed_bytes_ + bytes_ <= device_.slack()) && device_.clean();
  }
  std::vector<Slab> grow(const GrowthWish &wish) noexcept override {
    if (wish.at_once && device_.available() < wish.bytes) return {};
    lacking_ = wish.bytes;
    std::vector<Slab> pieces;
    for (std::uint64_t bytes = device_.next_bytes(pool_, wish.bytes); pieces.empty() && bytes > wish.bytes;) {
      pieces = device_.take(bytes, wish.piece_bytes);
      bytes = std::max(wish.bytes, whole_units(nine_tenths(bytes)));
    }
    if (pieces.empty()) pieces = device_.take(wish.bytes, wish.piece_bytes);
    if (pieces.empty() && device_.make_room(wish.bytes, &pool_, bytes_)) {
      pieces = device_.take(wish.bytes, wish.piece_bytes);
    }
    is_free_elsewhere_ = pieces.empty() && device_.is_free_elsewhere(pool_, wish.bytes);
    return pieces;
  }
  void shrink(const Slab &piece) noexcept override { device_.release(piece.bytes); }
  bool wait() noexcept override {
    return device_.clean() || (++retries_ <= kRetries && device_.make_room(lacking_, &pool_, bytes_));
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

std::uint64_t ReplayedDevice::next_bytes(SharedPool &pool, std::uint64_t minimum) const {
  GrowthState state;
  state.minimum = minimum;
  state.held = pool.statistics().slab_bytes;
  state.most = limit_;
  state.limit = limit_;
  state.available = available();
  if (!is_preallocated_ && &pool == pools_.front().get()) state.owed_after = kPreallocateAfter;
  if (!in_slabs_) state.granule_bytes = granule_bytes_;
  return next_growth(state);
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

// What the pools can give back. A pool that asks keeps its granules.
std::uint64_t ReplayedDevice::returnable(const SharedPool *asking) const {
  std::uint64_t bytes = 0;
  for (const auto &pool : pools_) {
    bytes += in_slabs_ ? free_slabs(*pool, 1).bytes : pool.get() == asking ? 0 : pool->gather_granules();
  }
  return bytes;
}

// `asking` also keeps its slabs once a hole has `block_bytes`.
void ReplayedDevice::give_back(std::uint64_t bytes, const SharedPool *asking, std::uint64_t block_bytes) {
  Releaser releaser(*this);
  std::uint64_t returned = 0;
  for (const auto &pool : pools_) {
    if (in_slabs_) {
      pool->give_back(releaser, pool.get() == asking ? block_bytes : UINT64_MAX);
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

bool ReplayedDevice::make_room(std::uint64_t bytes, const SharedPool *asking, std::uint64_t block_bytes) {
  if (available() >= bytes) return true;
  (void)clean();
  if (bytes > limit_ || available() + returnable(asking) < bytes) return false;
  give_back(bytes, asking, block_bytes);
  return available() >= bytes;
}

std::uint64_t ReplayedDevice::room_beyond_headroom() const {
  return std::min(available(), total_ == 0 ? UINT64_MAX : beyond_headroom(total_ - std::min(total_, charged_)));
}

void ReplayedDevice::preallocate(SharedPool &pool, std::uint64_t bytes) {
  is_preallocated_ = true;
  (void)clean();
  give_back(UINT64_MAX, in_slabs_ ? nullptr : &pool, 0);
  const std::uint64_t room = whole_units(room_beyond_headroom());
  if (room < std::max(Pool::slab_bytes_for(bytes), kFirstSlabBytes)) return;
  if (in_slabs_) {
    for (const Slab &slab : take(room, room)) (void)pool.add_slab(slab);
    return;
  }
  for (const std::uint64_t each : stitch::preallocation_sizes(room, kPageBytes, granule_bytes_)) {
    for (const Slab &piece : take(each, each)) (void)pool.add_granule(piece.id, piece.bytes, *memory_);
  }
}

// Called before a block is placed of which few fit: cleans freed memory, and makes one slab of free ones.
void ReplayedDevice::merge(SharedPool &pool, std::uint64_t bytes) {
  const std::uint64_t block_bytes = Pool::slab_bytes_for(bytes);
  FreePieces free;
  const auto possible = [&] {
    free = free_slabs(pool, block_bytes);
    return merged_bytes(free, free.count == 0 ? 0 : room_beyond_headroom(), block_bytes);
  };
  const Statistics held = pool.statistics();
  const bool is_empty = held.used_bytes == 0 && held.retired_bytes > 0 && held.largest_hole >= block_bytes;
  if (!is_empty && (!in_slabs_ || possible() == 0)) return;
  (void)clean();
  if (const std::uint64_t merged = in_slabs_ ? possible() : 0; merged != 0) {
    Merging upstream(*this, block_bytes, free.bytes, merged);
    (void)pool.merge(upstream);
  }
}

std::optional<ReplayedDevice::Block> ReplayedDevice::take_from_driver(std::uint64_t bytes) {
  const std::uint64_t charged = charged_for(bytes, available(), limit_);
  if (!make_room(charged, nullptr, 0)) return std::nullopt;
  charged_ += charged;
  return Block{charged, 0};
}

std::optional<ReplayedDevice::Block> ReplayedDevice::allocate(std::uint32_t number, std::uint64_t bytes) {
  SharedPool &pool = *pools_[number];
  if (number == 0 && !is_preallocated_ && pool.statistics().used_bytes + bytes >= kPreallocateAfter) {
    preallocate(pool, bytes);
  }
  if (bytes >= limit_ / kFewParts) merge(pool, bytes);
  Growth growth(*this, pool, bytes);
  if (const AllocateOutcome outcome = pool.allocate(bytes, growth)) return Block{0, outcome.block.address};
  if (growth.is_free_elsewhere()) return std::nullopt;
  const bool no_slab_ever = !in_slabs_ || Pool::slab_bytes_for(bytes) > limit_;
  if (bytes > available() && !(no_slab_ever && make_room(bytes, nullptr, 0))) return std::nullopt;
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
  if (bytes > other_ && !make_room(bytes - other_, nullptr, 0)) return false;
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
