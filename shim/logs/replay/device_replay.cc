#include "logs/replay/device_replay.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "logs/replay/granule_arena.h"
#include "pool/shared_pool.h"
#include "pool/stitch/sizes.h"
#include "pool/unit.h"

namespace ration::pool::replay {
namespace {

using Kind = DeviceStep::Kind;

constexpr std::uint64_t kPageBytes = GranuleArena::kPageBytes;
constexpr std::uint64_t kPreallocateAfter = std::uint64_t{32} << 20;  // the setting's default
// An arbitrary address.
constexpr Address kSlabs = 0x100000000000;

// Simulates a device under a limit: counts its memory only.
class LimitedDevice final : public Upstream, public stitch::DeviceMemory {
 public:
  LimitedDevice(std::uint64_t limit, bool of_slabs) : limit_(limit), of_slabs_(of_slabs) {}

  // Memory outside of pools takes this many bytes from now on. False: there is no room, and nothing changed.
  bool set_other(std::uint64_t bytes) noexcept {
    if (held_ + bytes > limit_) return false;
    other_ = bytes;
    return true;
  }
  [[nodiscard]] std::uint64_t other() const noexcept { return other_; }

  std::optional<std::uint64_t> create(std::uint64_t bytes) noexcept override {
    if (bytes == 0 || bytes > room()) return std::nullopt;
    held_ += bytes;
    return ++last_;
  }
  void release(std::uint64_t, std::uint64_t bytes) noexcept override { held_ -= bytes; }
  bool map(Address, std::uint64_t, std::uint64_t) noexcept override { return true; }
  bool allow(Address, std::uint64_t) noexcept override { return true; }
  bool unmap(Address, std::uint64_t) noexcept override { return true; }

  stitch::DeviceMemory *memory() noexcept override { return of_slabs_ ? nullptr : this; }
  [[nodiscard]] std::uint64_t room() const noexcept { return limit_ - held_ - other_; }
  bool collect() noexcept override { return false; }
  std::vector<Slab> grow(const GrowthWish &wish) noexcept override {
    const std::uint64_t wanted = std::min(std::max(wish.bytes, kPageBytes), std::max(wish.bytes, room()));
    const std::uint64_t bytes = of_slabs_ ? wanted : wish.bytes;
    const std::optional<std::uint64_t> id = create(bytes);
    if (!id) return {};
    return {{of_slabs_ ? std::exchange(next_address_, next_address_ + bytes + kPageBytes) : 0, bytes, *id}};
  }
  void shrink(const Slab &slab) noexcept override { held_ -= slab.bytes; }
  bool wait() noexcept override { return false; }

 private:
  const std::uint64_t limit_;
  const bool of_slabs_;
  std::uint64_t held_ = 0;  // bytes held by pools
  std::uint64_t other_ = 0;
  std::uint64_t last_ = 0;
  Address next_address_ = kSlabs;
};

class DeviceReplay {
 public:
  DeviceReplay(const DeviceTrace &trace, std::uint64_t limit, Backing backing)
      : trace_(trace), limit_(limit), is_slab_(backing == Backing::slab), device_(limit, is_slab_) {}

  std::optional<DeviceStop> run() {
    blocks_.resize(trace_.ids);
    for (std::uint32_t pool = 0; pool < trace_.pools; ++pool) open(pool);
    for (const DeviceStep &step : trace_.steps) {
      const std::uint64_t before = recorded_other_;
      if (step.kind == Kind::kFree) {
        free(step);
      } else if (step.kind == Kind::kAllocate ? !allocate(step) : !take_other(step.bytes)) {
        const std::uint64_t bytes = step.kind == Kind::kAllocate ? step.bytes : step.bytes - before;
        return DeviceStop{step.record, bytes, used_ + recorded_other_};
      }
    }
    return std::nullopt;
  }

 private:
  struct Placed {
    std::uint64_t bytes = 0;
    Address address = 0;  // 0: an allocation of the driver
  };

  void open(std::uint32_t number) {
    pools_.push_back(std::make_unique<SharedPool>());
    if (is_slab_) return;
    (void)pools_.back()->stitch_from({.page_bytes = kPageBytes,
                                      .home = GranuleArena::kHome,
                                      .home_bytes = stitch::home_bytes(limit_, kPageBytes),
                                      .views = GranuleArena::kViews,
                                      .views_bytes = GranuleArena::kViewsBytes,
                                      .slab = number + 1,
                                      .granule_bytes = stitch::granule_bytes(limit_, kPageBytes)});
  }

  void preallocate(SharedPool &pool) {
    if (is_slab_) {
      if (const std::uint64_t bytes = device_.room(); bytes != 0) {
        for (const Slab &slab : device_.grow({bytes})) (void)pool.add_slab(slab);
      }
      return;
    }
    for (const std::uint64_t bytes : stitch::preallocation_sizes(device_.room(), kPageBytes)) {
      if (const std::optional<std::uint64_t> handle = device_.create(bytes)) {
        (void)pool.add_granule(*handle, bytes, device_);
      }
    }
  }

  // Releases `bytes` or more from pools whose memory holds no block.
  bool make_room(std::uint64_t bytes) {
    std::uint64_t released = 0;
    for (const auto &pool : pools_) {
      if (released >= bytes) break;
      released += is_slab_ ? pool->give_back(device_) : pool->release_granules(bytes - released, device_);
    }
    return released != 0;
  }

  bool allocate(const DeviceStep &step) {
    SharedPool &pool = *pools_[step.pool];
    if (step.pool == 0 && !is_preallocated_ && (is_slab_ || live_in_first_ + step.bytes >= kPreallocateAfter)) {
      is_preallocated_ = true;
      preallocate(pool);
    }
    AllocateOutcome outcome = pool.allocate(step.bytes, device_);
    if (!outcome && make_room(step.bytes)) outcome = pool.allocate(step.bytes, device_);
    Placed &placed = blocks_[step.id];
    placed = {step.bytes, outcome ? outcome.block.address : 0};
    if (!outcome) {  // the driver serves what fits only exactly
      if (!set_other(recorded_other_, by_driver_ + step.bytes)) return false;
      by_driver_ += step.bytes;
    }
    used_ += step.bytes;
    live_in_first_ += step.pool == 0 ? step.bytes : 0;
    return true;
  }

  void free(const DeviceStep &step) {
    const Placed placed = blocks_[step.id];
    if (placed.address != 0) {
      (void)pools_[step.pool]->free(placed.address);
    } else {
      by_driver_ -= placed.bytes;
      (void)device_.set_other(recorded_other_ + by_driver_);
    }
    used_ -= placed.bytes;
    live_in_first_ -= step.pool == 0 ? placed.bytes : 0;
  }

  bool set_other(std::uint64_t recorded, std::uint64_t by_driver) {
    const std::uint64_t wanted = recorded + by_driver;
    if (device_.set_other(wanted)) return true;
    const std::uint64_t room = device_.room() + device_.other();
    return room < wanted && make_room(wanted - room) && device_.set_other(wanted);
  }

  bool take_other(std::uint64_t bytes) {
    if (!set_other(bytes, by_driver_)) return false;
    recorded_other_ = bytes;
    return true;
  }

  const DeviceTrace &trace_;
  const std::uint64_t limit_;
  const bool is_slab_;
  LimitedDevice device_;
  std::vector<std::unique_ptr<SharedPool>> pools_;
  std::vector<Placed> blocks_;
  bool is_preallocated_ = false;
  std::uint64_t live_in_first_ = 0;
  std::uint64_t recorded_other_ = 0;
  std::uint64_t by_driver_ = 0;  // bytes of blocks for which no pool had room
  std::uint64_t used_ = 0;       // requested bytes
};

}  // namespace

std::optional<DeviceStop> replay_device(const DeviceTrace &trace, std::uint64_t limit, Backing backing) {
  return DeviceReplay(trace, limit, backing).run();
}

std::optional<DeviceStop> replay_direct(const DeviceTrace &trace, std::uint64_t limit) {
  std::uint64_t used = 0;
  std::uint64_t other = 0;
  std::vector<std::uint64_t> bytes(trace.ids);
  for (const DeviceStep &step : trace.steps) {
    const std::uint64_t before = used + other;
    switch (step.kind) {
      case Kind::kAllocate:
        used += bytes[step.id] = step.bytes;
        break;
      case Kind::kFree:
        used -= bytes[step.id];
        break;
      case Kind::kOther:
        other = step.bytes;
        break;
    }
    if (used + other > limit && used + other > before) return DeviceStop{step.record, used + other - before, before};
  }
  return std::nullopt;
}

std::optional<std::uint64_t> find_device_minimum(const DeviceTrace &trace, Backing backing) {
  if (trace.peak_bytes == 0) return 0;
  const std::uint64_t step = backing == Backing::slab ? 1 : kPageBytes;
  const auto rounded_up = [step](std::uint64_t bytes) { return (bytes + step - 1) / step * step; };
  // No limit below the peak suffices. Whether a limit fits is not monotonic, so this finds one of several thresholds.
  std::uint64_t failing = rounded_up(trace.peak_bytes) - step;
  std::uint64_t fitting = rounded_up(trace.peak_bytes);
  for (std::uint64_t more = std::max(step, trace.peak_bytes / 64); replay_device(trace, fitting, backing); more *= 2) {
    failing = fitting;
    if (fitting + more > kMaximumBytes || more > 8 * trace.peak_bytes + (kPageBytes << 4)) return std::nullopt;
    fitting = rounded_up(fitting + more);
  }
  while (fitting - failing > std::max(fitting / 2000, step)) {
    const std::uint64_t middle = failing + (fitting - failing) / 2 / step * step;
    if (middle == failing) break;
    (replay_device(trace, middle, backing) ? failing : fitting) = middle;
  }
  return fitting;
}

}  // namespace ration::pool::replay
