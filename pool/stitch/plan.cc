// Layer: pool, a leaf (standard library only). Threads: one.
#include "pool/stitch/plan.h"

namespace ration::pool::stitch {
namespace {

bool split(Plan::Split &split, DeviceMemory &memory) {
  if (split.home != 0 && !memory.unmap(split.home, split.bytes)) return false;
  split.home = 0;
  memory.release(split.handle, split.bytes);
  split.released = true;
  for (Plan::Part &part : split.into) {
    const std::optional<std::uint64_t> handle = memory.create(part.bytes);
    if (!handle) return false;
    part.handle = *handle;
    part.done = true;
  }
  return true;
}

}  // namespace

void Plan::execute(DeviceMemory &memory) noexcept {
  carry_out(memory);
  memory.release_rest();
}

void Plan::carry_out(DeviceMemory &memory) noexcept {
  for (Dropped &each : dropped) {
    each.done = memory.unmap(each.address, each.bytes);
    if (!each.done) return;
  }
  for (Release &each : releases) {
    if (each.home != 0 && !memory.unmap(each.home, each.bytes)) return;
    memory.release(each.handle, each.bytes);
    each.done = true;
  }
  for (Split &each : splits) {
    if (!split(each, memory)) return;
  }
  const auto handle_of = [this](GranuleId granule, std::uint64_t known) {
    for (const Split &each : splits) {
      for (const Part &part : each.into) {
        if (part.granule == granule) return part.handle;
      }
    }
    return known;
  };
  for (Homing &each : homings) {
    if (each.usable) continue;
    each.handle = handle_of(each.granule, each.handle);
    if (!each.mapped && !memory.map(each.address, each.handle, each.bytes)) return;
    each.usable = memory.allow(each.address, each.bytes);
    each.mapped = each.usable || !memory.unmap(each.address, each.bytes);
    if (!each.usable) return;
  }
  if (view == 0 || view_mapped) return;
  for (Part &part : mappings) {
    part.handle = handle_of(part.granule, part.handle);
    if (!memory.map(view_range + mapped_bytes, part.handle, part.bytes)) break;
    part.done = true;
    mapped_bytes += part.bytes;
  }
  view_mapped = mapped_bytes == view_bytes && memory.allow(view_range, view_bytes);
  if (!view_mapped && mapped_bytes != 0 && memory.unmap(view_range, mapped_bytes)) mapped_bytes = 0;
}

}  // namespace ration::pool::stitch
