#include "logs/history/limit_need.h"

#include <algorithm>
#include <string_view>

#include "base/saturating.h"
#include "config/values/size.h"

namespace ration::logs {
namespace {

using Sure = History::Need::Sure;

// The largest step in which the driver's pools grow, as policy/driver_pools/stream_pools.cc reserves it.
constexpr std::uint64_t kPoolStep = 32U << 20U;

bool is_of_driver_pools(std::string_view api) {
  return api.find("Async") != std::string_view::npos || api.starts_with("cuGraph");
}

// True if a pool of the device's mode serves the block.
bool is_for_pools(std::string_view api) {
  return api.starts_with("cuMemAlloc_v2") || api.starts_with("cuMemAllocPitch");
}

// True for functions for which the driver takes exactly the requested bytes.
bool is_exact(std::string_view api) {
  return is_for_pools(api) || api.starts_with("cuMemAllocManaged") || api.starts_with("cuMemCreate");
}

std::uint64_t whole(std::uint64_t bytes, std::uint64_t unit) {
  return bytes > UINT64_MAX - unit ? bytes : (bytes + unit - 1) / unit * unit;
}

std::string limit_words(const History::Refusal &refusal) {
  const std::string was = config::show_exact_bytes(refusal.limit);
  const bool is_least = refusal.need.sure == Sure::least;
  const std::uint64_t bytes = is_least ? refusal.need.bytes : whole(refusal.need.bytes, config::kMiB);
  if (bytes <= refusal.limit) {
    return "it needs a limit above " + was + ", the one in force; how much above is not known";
  }
  const std::string limit = config::show_exact_bytes(bytes);
  const bool is_beyond_device = refusal.total != 0 && bytes > refusal.total;
  const std::string rest =
      is_beyond_device ? ", but the device has " + config::show_exact_bytes(refusal.total) : "; it was " + was;
  if (is_least) {
    return "it needs a limit of at least " + limit + rest;
  }
  return "a limit of " + limit + (refusal.need.sure == Sure::enough ? " would have served it" : " may serve it") + rest;
}

// Says where the free memory was that did not serve the request.
std::string pool_words(const History::Refusal &refusal) {
  if (refusal.api == "cuIpcGetMemHandle") {
    return "the pool's memory has no handle for other processes: RATION_IPC=direct, or RATION_BACKING=slab, would help";
  }
  if (refusal.backing == "slab") {
    return "free memory lay in slabs that hold blocks: RATION_BACKING=vmm, or RATION_PREALLOCATE=false, would help";
  }
  const std::string step = config::show_bytes(kPoolStep);
  if (refusal.backing == "vmm") {
    return is_of_driver_pools(refusal.api)
               ? "free memory lay in pieces that also hold blocks, and the driver's pools take " + step + " at once: "
               : "free memory lay in pieces that also hold blocks, or was less than one piece: ";
  }
  return refusal.mode == "async" || is_of_driver_pools(refusal.api)
             ? "free memory lay in the driver's pools, in parts too small, and they take " + step + " at once: "
             : "free memory lay in pieces too small: ";
}

// Like need_of(), if the device has the memory.
History::Need need_under_limit(const Record &oom, const History::Device &device, bool has_all, bool is_first) {
  const std::string_view api = oom.text("api");
  const std::uint64_t asked = oom.number("req");
  const bool in_steps = is_of_driver_pools(api) || (device.mode == "async" && is_for_pools(api));
  const std::uint64_t taken = in_steps ? whole(asked, kPoolStep) : asked;
  const bool in_granules = device.backing == "vmm";
  if (!has_all) {
    return {};
  }
  if (!is_first || (device.mode != "direct" && device.mode != "async" && !in_granules)) {
    return {device.live_bytes + asked, Sure::least};
  }
  const auto surely = [&](bool known) { return known && (in_steps || is_exact(api)) ? Sure::enough : Sure::maybe; };
  // Near a limit, a pool of the driver grows by less than a step; under a larger limit it takes the whole step.
  const std::uint64_t in_pools = whole(device.driver_pools, kPoolStep);
  // A different one of its chunks may serve a block, too.
  const std::uint64_t spare = device.driver_pools != 0 ? kPoolStep : 0;
  if (in_granules) {
    // Under another limit, blocks may lie in other granules. Then granules with free parts serve the pool's own blocks,
    // but the driver's pools need whole free granules.
    const std::uint64_t granule = device.granules.granule_bytes();
    const std::uint64_t in_use = device.granules.bytes();
    const std::uint64_t unclean = whole(oom.number("quarantined"), granule);
    const bool is_known = unclean == 0 && device.driver_pools == 0 && (!in_steps || in_use == 0);
    return {in_use + unclean + device.driver_blocks + in_pools + spare + (in_steps ? taken : whole(asked, granule)),
            surely(is_known)};
  }
  if (device.mode == "async") {
    // Uncertain in two cases: blocks that the driver serves itself now may come from its pool then, and a pool that
    // holds far more than its blocks will do so again.
    const bool is_known = device.driver_blocks == 0 && in_pools <= whole(oom.number("used"), kPoolStep) + kPoolStep;
    return {in_pools + whole(device.driver_blocks, kPoolStep) + taken + spare, surely(is_known)};
  }
  return {in_pools + device.driver_blocks + taken, surely(true)};
}

}  // namespace

History::Need need_of(const Record &oom, const History::Device &device, bool has_all, bool is_first) {
  History::Need need = need_under_limit(oom, device, has_all, is_first);
  const std::uint64_t more = minus_or_zero(need.bytes, oom.number("reserved"));
  if (need.sure == Sure::enough && oom.known_number("device_free").value_or(0) < more) {
    need.sure = Sure::maybe;  // the device may have less than the limit would allow
  }
  return need;
}

std::string remedy(const History::Refusal &refusal) {
  if (refusal.reason == "limit") {
    return limit_words(refusal);
  }
  if (refusal.reason == "group") {
    const bool of_container = refusal.by.group.starts_with("container:");
    const std::string whose = of_container ? "container" : "group";
    const std::string option = refusal.by.group.starts_with("tree:") ? "--group-tree" : "--" + whose + "-limit";
    if (refusal.by.limit != 0 && refusal.largest.bytes > refusal.by.limit) {
      return "it alone is more than the " + whose + "'s limit: only a larger " + option + " would help";
    }
    return "the " + whose + "'s limit left too little: `ration ps` shows who holds it; a larger " + option +
           " would help";
  }
  if (refusal.reason == "device" && refusal.device_free && *refusal.device_free >= refusal.largest.bytes) {
    return "the driver refused it, although the device had " + config::show_exact_bytes(*refusal.device_free) +
           " left: a pool of the driver keeps the limit that it began with, and another program may have freed memory";
  }
  if (refusal.reason == "pool_holds") {
    const std::string words = pool_words(refusal);
    return words.ends_with(": ") ? words + limit_words(refusal) : words;
  }
  if (refusal.reason == "device") {
    return "the device had " +
           (refusal.device_free ? config::show_exact_bytes(*refusal.device_free) : std::string("too little")) +
           " left: this program, other processes, or the driver itself hold the rest";
  }
  return refusal.reason == "fault" ? "it was refused on purpose (--fail)" : "no remedy is known for this reason";
}

}  // namespace ration::logs
