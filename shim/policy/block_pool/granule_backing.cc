#include "policy/block_pool/granule_backing.h"

#include <algorithm>

#include "base/clock.h"
#include "events/diagnostics.h"
#include "policy/block_pool/granule_check.h"
#include "pool/stitch/sizes.h"

namespace ration::policy {
namespace {

using driver::real;

// Wanted memory is released in at most so many parts, each of at least so many bytes.
constexpr std::uint64_t kGifts = 16;
constexpr std::uint64_t kLeastGift = 32U << 20U;
// The address space for views, as a multiple of the home range. Addresses cost nothing but the page tables of what is
// mapped, so each view has addresses of its own for as long as it may be used. A process that has no more gets fewer.
constexpr std::uint64_t kViewSpaces = 16;

}  // namespace

// Called once for each pool, by one thread at a time for each device.
bool GranuleBacking::open(const ContextRef &context, ContextPool &pool) noexcept try {
  if (support_.asked() == BackingKind::slab) {
    return false;
  }
  const int device = context->device;
  const std::optional<GranuleSupport::Answer> known = support_.known(device);
  GranuleSupport::Answer found = known ? *known : GranuleSupport::ask(support_.handle_of(device));
  if (found.page_bytes == 0) {
    return have_none(device, found.reason, support_.asked() == BackingKind::vmm && !known);
  }
  const std::uint64_t total = parts_.devices.total_on(device);
  if (total == 0 || support_.loses_much(device, found.page_bytes)) {
    return false;
  }
  const RelaxedCapture relaxed;
  const std::optional<pool::stitch::Layout> layout = reserve(device, total, found.page_bytes);
  if (!layout) {
    return known ? false : have_none(device, "the driver reserves no addresses", true);
  }
  if (!known) {
    GranuleCheck check(parts_.ledger, unreturned_, device, support_.handle_of(device), *layout);
    if (check.run(found.kind) == GranuleCheck::Result::fails) {
      unreturned_.give_up(*layout);
      unreturned_.retry();
      return have_none(device, check.reason(), true);
    }
    support_.note(device, found.page_bytes, found.kind);
    events::explain(events::Level::info, "backing: device ", device, ": ", found.reason,
                    "; a first granule was made, mapped and released as it should be; pages are of ", found.page_bytes,
                    " bytes, granules of ", layout->granule_bytes);
  }
  pool.layout = *layout;
  const bool entered = slabs_.insert(layout->home, layout->home_bytes + layout->views_bytes, context);
  if (!entered || !pool.blocks.stitch_from(*layout)) {
    if (entered) {
      slabs_.erase(layout->home, *context);
    }
    unreturned_.give_up(*layout);
    return false;
  }
  parts_.journal.record(events::SlabAlloc{layout->home, 0, device, context->number, layout->slab, "cuMemAddressReserve",
                                          "range", 0, layout->home_bytes + layout->views_bytes});
  return true;
} catch (...) {  // no memory of the host: slabs
  return false;
}

std::optional<pool::stitch::Layout> GranuleBacking::reserve(int device, std::uint64_t total, std::uint64_t page_bytes) {
  pool::stitch::Layout layout{};
  layout.page_bytes = page_bytes;
  layout.home_bytes = pool::stitch::home_bytes(total, page_bytes);
  layout.slab = pools_.next_number();
  // The size is that of a preallocation's granules: otherwise memory that the pool grows by would lie across the places
  // of blocks of a granule's size.
  layout.granule_bytes = support_.granule_bytes(device, page_bytes);
  CUdeviceptr address = 0;  // one range, so that the views lie above the home range
  CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
  for (std::uint64_t spaces = kViewSpaces; spaces != 0 && result != CUDA_SUCCESS; spaces /= 4) {
    layout.views_bytes = spaces * layout.home_bytes;
    result = real.cuMemAddressReserve(&address, layout.home_bytes + layout.views_bytes, page_bytes, 0, 0);
  }
  if (result != CUDA_SUCCESS) {
    return std::nullopt;
  }
  layout.home = address;
  layout.views = address + layout.home_bytes;
  if (address % page_bytes != 0) {
    unreturned_.give_up(layout);
    return std::nullopt;
  }
  const std::uint64_t asked = parts_.devices.preallocation_on(device).granule_bytes;
  if (asked != 0 && asked != layout.granule_bytes && !support_.known(device)) {
    events::say("granule: device " + std::to_string(device) + ": granules of " +
                std::to_string(layout.granule_bytes >> 20U) + "MiB instead of " + std::to_string(asked) +
                " bytes: they are of whole pages of " + std::to_string(page_bytes >> 20U) +
                "MiB, and at most a sixteenth of the pool");
  }
  return layout;
}

// Notes that the device has no granules. stderr shows `reason` if `is_said`.
bool GranuleBacking::have_none(int device, const std::string &reason, bool is_said) {
  support_.note(device, 0, {});
  if (is_said) {
    events::say("backing " + std::string(name_of(support_.asked())) + ": device " + std::to_string(device) + ": " +
                reason + "; slabs serve it");
  }
  return false;
}

void GranuleBacking::let_late_peers_in(const Context &context, ContextPool &pool) {
  if (pool.blocks.stitches() && support_.has_peers(context.device)) {
    for (const pool::stitch::FreeRanges::Range &each : pool.blocks.everything().mappings) {
      (void)support_.allow_access(context.device, each.address, each.bytes);
    }
  }
}

// A granule that is mapped meanwhile either sees the new peer or is in the pool's list of mappings.
void GranuleBacking::peer_may_access(int device, int peer) noexcept try {
  if (support_.asked() == BackingKind::slab || !support_.add_peer(device, peer)) {
    return;
  }
  const RelaxedCapture relaxed;
  for (const ContextRef &context : pools_.on(device).contexts()) {
    ContextPool &pool = *existing_pool(*context);
    const ContextPool::InFlight in_flight(pool);
    let_late_peers_in(*context, pool);
  }
} catch (...) {  // no memory of the host
}

// Creates all pieces or none. If two processes do this at once, neither may get enough. Then the pieces go back, and
// one handle for all the bytes is tried.
// Design: design/granules.md#growing-by-granules
CUresult GranuleBacking::create(int device, std::uint64_t bytes, std::uint64_t piece_bytes,
                                std::vector<pool::Slab> &pieces) {
  CUresult result = CUDA_SUCCESS;
  for (std::uint64_t left = bytes; left != 0 && result == CUDA_SUCCESS; left -= std::min(left, piece_bytes)) {
    CUmemGenericAllocationHandle handle = 0;
    const std::uint64_t size = std::min(left, piece_bytes);
    result = GranuleSupport::create(support_.handle_of(device), size, support_.kind(device), handle);
    if (result == CUDA_SUCCESS) {
      pieces.push_back({0, size, handle});
    }
  }
  for (; result != CUDA_SUCCESS && !pieces.empty(); pieces.pop_back()) {
    if (const pool::Slab &last = pieces.back(); real.cuMemRelease(last.id) != CUDA_SUCCESS) {
      parts_.ledger.account(device).charge(last.bytes);
      unreturned_.add_handle(device, last.id, last.bytes);
    }
  }
  return result == CUDA_ERROR_OUT_OF_MEMORY && piece_bytes < bytes ? create(device, bytes, bytes, pieces) : result;
}

// Takes whole pages. The id of a piece is the driver's handle.
Taken GranuleBacking::take(const PoolCall &call, const Wanted &wanted) {
  const std::uint64_t page_bytes = call.pool.layout.page_bytes;
  const std::uint64_t bytes = wanted.bytes / page_bytes * page_bytes;
  Taken taken{TakeOutcome::failed};
  taken.pieces.reserve(bytes / wanted.piece_bytes + 1);
  ledger::Transit transit(call.device.account.transits());
  const std::uint64_t start = parts_.journal.logging() ? now_ns() : 0;
  taken.outcome = call.device.obtain(bytes, wanted.effort, transit, taken.error, [&] {
    return create(call.device.device, bytes, wanted.piece_bytes, taken.pieces);
  });
  if (taken.outcome == TakeOutcome::taken) {
    note_all(call, wanted.why, start != 0 ? (now_ns() - start) / taken.pieces.size() : 0, taken.pieces);
    call.device.account.request_publication();
  }
  return taken;
}

// If the host has no memory to note all pieces, those that were noted serve, and the rest go back.
void GranuleBacking::note_all(const PoolCall &call, const char *why, std::uint64_t each_ns,
                              std::vector<pool::Slab> &pieces) {
  std::size_t noted = 0;
  try {
    for (; noted < pieces.size(); ++noted) {
      log_.note(*call.where.context, pieces[noted].id, pieces[noted].bytes, why, each_ns);
    }
  } catch (...) {
    for (; pieces.size() > noted; pieces.pop_back()) {
      const pool::Slab &last = pieces.back();
      if (real.cuMemRelease(last.id) == CUDA_SUCCESS) {
        call.device.account.release(last.bytes);
      } else {
        unreturned_.add_handle(call.device.device, last.id, last.bytes);
      }
    }
    if (pieces.empty()) {
      throw;
    }
  }
}

bool GranuleBacking::give_back(const char *api, const ContextRef &context, const pool::Slab &granule) noexcept {
  GranuleMemory memory(granule_parts_, api, context);
  memory.release(granule.id, granule.bytes);
  return true;
}

// Nothing has to wait, because memory that no block is in is clean. REQUIRES: the quarantine was asked lately.
Returned GranuleBacking::give_back_free(const Room::Need &need, const ContextRef &context, bool) noexcept {
  Returned all;
  ContextPool &pool = *existing_pool(*context);
  const Pin pin(*context);
  if (&pool == need.asking || !pin) {
    return all;
  }
  std::uint64_t wanted = need.bytes;
  for (std::uint64_t part = 0, gone = 0; wanted != 0 && gone >= part; wanted -= std::min(wanted, gone)) {
    // Its destructor releases the bytes in the ledger, so a process that waits for them sees each part come.
    GranuleMemory memory(granule_parts_, need.api, context);
    part = std::min(wanted, std::max(kLeastGift, wanted / kGifts));
    gone = pool.blocks.release_granules(part, memory);
    all.bytes += gone;
    all.granules += memory.released();
  }
  return all;
}

std::uint64_t GranuleBacking::returnable(ContextPool &pool, bool asking) {
  if (asking) {
    return 0;
  }
  const pool::Statistics held = pool.blocks.statistics();
  return held.retired_bytes == 0 ? pool.blocks.gather_granules() : held.slab_bytes - held.used_bytes;
}

void GranuleBacking::preallocate(const PoolCall &call, std::uint64_t bytes, std::uint64_t) {
  GranuleMemory memory(granule_parts_, call.request.api, call.where.context);
  const std::uint64_t page_bytes = call.pool.layout.page_bytes;
  for (std::uint64_t size : pool::stitch::preallocation_sizes(bytes, page_bytes, call.pool.layout.granule_bytes)) {
    for (std::uint64_t left = size; left >= page_bytes;) {
      size = std::min(size, left);
      const Taken taken = take(call, {size, ledger::Effort::kImmediate, "preallocate"});
      if (taken.outcome != TakeOutcome::taken) {
        size = size / 2 / page_bytes * page_bytes;
        if (size == 0) {
          return;
        }
        continue;
      }
      const pool::Slab &granule = taken.pieces.front();
      if (!call.pool.blocks.add_granule(granule.id, granule.bytes, memory)) {
        give_back(call.request.api, call.where.context, granule);
        return;
      }
      left -= granule.bytes;
    }
  }
}

CUresult GranuleBacking::locate(const ContextRef &owner, const pool::Block &, ledger::ExportedBlock &in,
                                std::string &refused) {
  if (!can_share(owner->device)) {
    refused = "this driver gives granules no handle for that (ipc=direct, or backing=slab)";
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  in.kind = ledger::ExportKind::granules;
  return CUDA_SUCCESS;
}

// Unlike slabs, granules are not freed with their context.
void GranuleBacking::end(const char *api, const ContextRef &context, ContextPool &pool) noexcept {
  const RelaxedCapture relaxed;
  {
    GranuleMemory memory(granule_parts_, api, context);
    try {
      pool::stitch::Stitcher::Everything all = pool.blocks.everything();
      std::erase_if(all.mappings, [&](const auto &each) { return memory.unmap(each.address, each.bytes); });
      for (const pool::stitch::Plan::Part &each : all.handles) {
        memory.release(each.handle, each.bytes);
      }
      for (const pool::stitch::FreeRanges::Range &each : all.mappings) {
        memory.leave_mapped(each.address, each.bytes);
      }
    } catch (...) {  // no memory of the host: they stay charged, as the driver has them
    }
  }
  parts_.journal.record(events::SlabFree{pool.layout.home, 0, context->device, context->number, pool.layout.slab, api});
  slabs_.erase(pool.layout.home, *context);
  unreturned_.give_up(pool.layout);
  unreturned_.retry();
}

std::unique_ptr<pool::stitch::DeviceMemory> GranuleBacking::memory(const char *api, const ContextRef &context) {
  return std::make_unique<GranuleMemory>(granule_parts_, api, context);
}

}  // namespace ration::policy
