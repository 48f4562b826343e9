// Layer: pool, a leaf (standard library only). Threads: one.
#include "pool/stitch/plan.h"

namespace ration::pool::stitch {

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
    for (Part &part : each.into) {
      const std::optional<std::uint64_t> handle = memory.create(part.bytes);
      if (!handle) return;
      part.handle = *handle;
      part.done = true;
    }
  }
  const auto handle_of = [this](GranuleId granule, std::uint64_t known) {
    for (const Release &each : releases) {
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
