#include "logs/replay/device_replay.h"

#include <algorithm>
#include <utility>

#include "logs/replay/granule_arena.h"
#include "logs/replay/replayed_device.h"
#include "pool/unit.h"

namespace ration::pool::replay {
namespace {

using Kind = DeviceStep::Kind;

// The most that contexts are likely to take of a device.
constexpr std::uint64_t kMostOfContext = std::uint64_t{640} << 20;

// `total`: the device's memory without that of contexts.
std::optional<DeviceStop> replay_once(const DeviceTrace &trace, std::uint64_t limit, std::uint64_t total,
                                      Backing backing, Reuse reuse) {
  ReplayedDevice device(limit, total, backing, trace.pools, reuse);
  std::vector<ReplayedDevice::Block> blocks(trace.ids);
  std::vector<std::uint64_t> requested(trace.ids);
  std::uint64_t used = 0;
  std::uint64_t other = 0;
  for (const DeviceStep &step : trace.steps) {
    switch (step.kind) {
      case Kind::kAllocate: {
        const std::optional<ReplayedDevice::Block> block = device.allocate(step.pool, step.bytes);
        if (!block) return DeviceStop{step.record, step.bytes, used + other};
        blocks[step.id] = *block;
        used += requested[step.id] = step.bytes;
        break;
      }
      case Kind::kFree:
        device.free(step.pool, blocks[step.id]);
        used -= requested[step.id];
        break;
      case Kind::kOther:
        if (!device.set_other(step.bytes)) return DeviceStop{step.record, step.bytes - other, used + other};
        other = step.bytes;
        break;
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<DeviceStop> replay_device(const DeviceTrace &trace, std::uint64_t limit, Backing backing) {
  // How much a limit near the device's size leaves to the preallocation depends on what contexts take.
  const std::uint64_t least = trace.total_bytes - std::min(trace.total_bytes, kMostOfContext);
  std::optional<DeviceStop> stop;
  for (const std::uint64_t total : {trace.total_bytes, least}) {
    for (const Reuse reuse : {Reuse::when_collected, Reuse::at_once}) {
      stop = stop ? stop : replay_once(trace, limit, total, backing, reuse);
    }
    if (trace.total_bytes == 0 || limit <= ReplayedDevice::beyond_headroom(least)) break;
  }
  return stop;
}

std::optional<DeviceStop> replay_direct(const DeviceTrace &trace, std::uint64_t limit) {
  std::uint64_t charged = 0;  // including other memory
  std::uint64_t other = 0;
  std::vector<std::uint64_t> bytes(trace.ids);
  for (const DeviceStep &step : trace.steps) {
    const std::uint64_t before = charged;
    const std::uint64_t left = limit - std::min(limit, before);
    switch (step.kind) {
      case Kind::kAllocate:
        charged += bytes[step.id] = charged_for(step.bytes, left, limit);
        break;
      case Kind::kFree:
        charged -= bytes[step.id];
        break;
      case Kind::kOther:
        charged += step.bytes - std::exchange(other, step.bytes);
        break;
    }
    if (charged > limit && charged > before) {
      return DeviceStop{step.record, step.kind == Kind::kAllocate ? step.bytes : charged - before, before};
    }
  }
  return std::nullopt;
}

std::uint64_t find_direct_minimum(const DeviceTrace &trace) {
  if (trace.peak_bytes == 0) return 0;
  std::uint64_t failing = trace.peak_bytes - 1;
  std::uint64_t fitting = trace.peak_bytes + trace.ids * kUnitBytes;
  while (fitting - failing > 1) {
    const std::uint64_t middle = failing + (fitting - failing) / 2;
    (replay_direct(trace, middle) ? failing : fitting) = middle;
  }
  return fitting;
}

std::optional<std::uint64_t> find_device_minimum(const DeviceTrace &trace, Backing backing) {
  if (trace.peak_bytes == 0) return 0;
  constexpr std::uint64_t kPageBytes = GranuleArena::kPageBytes;
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
  return fitting + (backing == Backing::vmm && trace.pools > 1 ? kSpareOfPools : 0);
}

}  // namespace ration::pool::replay
