// Granules: the part of BlockPools for contexts whose pool is made of mapped physical memory instead of slabs.
// Layer: policy/block_pool.
#include <algorithm>

#include "base/clock.h"
#include "events/diagnostics.h"
#include "policy/block_pool/block_pools.h"
#include "policy/block_pool/first_granule.h"
#include "policy/block_pool/granule_memory.h"
#include "pool/stitch/sizes.h"

namespace ration::policy {
namespace {

using driver::real;

constexpr std::uint64_t kAllDevices = 64;  // bits of the peers
// What a limit has beyond whole pages is lost to granules. From this part of it on slabs serve it better.
constexpr std::uint64_t kLostPart = 1024;
constexpr std::uint64_t kLostPartOfGroup = 128;
// What is wanted is released in at most so many parts, of at least so many bytes.
constexpr std::uint64_t kGifts = 16;
constexpr std::uint64_t kLeastGift = 32U << 20U;

}  // namespace

CUdevice BlockPools::handle_of(int device) {
  const Device *known = devices_.find(device);
  return known != nullptr ? known->handle : device;
}

Backing BlockPools::backing_on(CUdevice device, std::string &reason) {
  if (backing_ == Backing::slab) {
    reason = "slab was asked for";
    return Backing::slab;
  }
  const GranuleMemory::Support found = GranuleMemory::support_on(device);
  reason = found.reason;
  if (found.page_bytes != 0 && loses_much(device, found.page_bytes)) {
    reason = "the limit is not in whole pages of " + std::to_string(found.page_bytes >> 20U) + "MiB";
    return Backing::slab;
  }
  if (found.page_bytes == 0) {
    return Backing::slab;
  }
  if (const Device *known = devices_.find_handle(device)) {
    const std::uint64_t asked = devices_.preallocation_on(known->ordinal).granule_bytes;
    const std::uint64_t bytes = granule_bytes_on(known->ordinal, found.page_bytes, asked);
    reason = "granules of " + std::to_string(bytes >> 20U) + "MiB, in pages of " +
             std::to_string(found.page_bytes >> 20U) + "MiB";
  }
  return Backing::vmm;
}

std::uint64_t BlockPools::granule_bytes_on(int device, std::uint64_t page_bytes, std::uint64_t asked) {
  return pool::stitch::granule_bytes(std::min(most_bytes(device), ledger_.account(device).group_limit()), page_bytes,
                                     asked);
}

bool BlockPools::loses_much(CUdevice device, std::uint64_t page_bytes) {
  const Device *known = devices_.find_handle(device);
  if (backing_ != Backing::best || known == nullptr) {
    return false;
  }
  const ledger::Account &account = ledger_.account(known->ordinal);
  // Of a group's limit more may be lost: from a slab nothing goes back to another member while a block is in it.
  const std::uint64_t limit = std::min(account.limit(), account.group_limit());
  const std::uint64_t part = account.group_limit() <= account.limit() ? kLostPartOfGroup : kLostPart;
  return limit != UINT64_MAX && limit % page_bytes > limit / part;
}

// Once for each pool, before its first request. Where anything is missing the pool is made of slabs.
void BlockPools::choose_backing(const ContextRef &context, ContextPool &pool, DevicePoolState &state) noexcept try {
  if (backing_ == Backing::slab) {
    return;
  }
  const CUdevice handle = handle_of(context->device);
  const bool is_known = state.page_bytes.load() != DevicePoolState::kNotKnown;
  GranuleMemory::Support found = is_known ? GranuleMemory::Support{state.page_bytes.load(), state.kind.load(), {}}
                                          : GranuleMemory::support_on(handle);
  if (found.page_bytes == 0) {
    return have_no_granules(context->device, state, found.reason, backing_ == Backing::vmm && !is_known);
  }
  const Device *known = devices_.find(context->device);
  const std::uint64_t total = known != nullptr ? known->total.load(std::memory_order_relaxed) : 0;
  if (total == 0 || loses_much(handle, found.page_bytes)) {
    return;
  }
  const RelaxedCapture relaxed;
  const std::uint64_t start = journal_.logging() ? now_ns() : 0;
  const std::uint64_t slab = last_slab_.fetch_add(1, std::memory_order_relaxed) + 1;
  std::optional<pool::stitch::Layout> layout = GranuleMemory::reserve(found.page_bytes, total, slab);
  if (!layout) {
    return is_known ? void() : have_no_granules(context->device, state, "the driver reserves no addresses", true);
  }
  // As in a preallocation: what it grows by would else lie across the places of blocks of its size.
  layout->granule_bytes = granule_bytes_on(context->device, found.page_bytes, state.plan.granule_bytes);
  if (const std::uint64_t asked = state.plan.granule_bytes; !is_known && asked != 0 && asked != layout->granule_bytes) {
    events::say("granule: device " + std::to_string(context->device) + ": granules of " +
                std::to_string(layout->granule_bytes >> 20U) + "MiB instead of " + std::to_string(asked) +
                " bytes: they are of whole pages of " + std::to_string(found.page_bytes >> 20U) +
                "MiB, and at most a sixteenth of the pool");
  }
  FirstGranule first(*this, context->device, *layout);
  const FirstGranule::Result tried = is_known ? FirstGranule::Result::no_room : first.make(found.kind);
  if (tried == FirstGranule::Result::fails) {
    unreturned_.give_up(*layout);
    unreturned_.retry();
    return have_no_granules(context->device, state, first.reason(), true);
  }
  state.kind.store(found.kind);
  state.page_bytes.store(found.page_bytes);
  pool.layout = *layout;
  GranuleMemory memory(*this, "cuMemCreate", context);
  const bool listed = slabs_.insert(layout->home, layout->home_bytes + layout->views_bytes, context);
  if (!listed || !pool.blocks.stitch_from(*layout)) {
    if (tried == FirstGranule::Result::works && first.handle() != 0) {
      first.give_up();
    }
    if (listed) {
      slabs_.erase(layout->home, *context);
    }
    unreturned_.give_up(*layout);
    return;
  }
  journal_.record(events::SlabAlloc{layout->home, 0, context->device, context->number, slab, "cuMemAddressReserve",
                                    "range", 0, layout->home_bytes + layout->views_bytes});
  if (tried == FirstGranule::Result::works && first.handle() != 0) {
    note_granule(first.handle(), layout->page_bytes, "check", *context, start != 0 ? now_ns() - start : 0);
    ledger_.account(context->device).request_publication();
    if (!pool.blocks.add_mapped_granule(first.handle(), layout->page_bytes, memory)) {
      return_granule("cuMemCreate", context, first.handle(), layout->page_bytes);
    }
  }
} catch (...) {  // no memory of the host: slabs
}

void BlockPools::have_no_granules(int device, DevicePoolState &state, const std::string &reason, bool is_said) {
  state.page_bytes.store(0);
  if (is_said) {
    events::say("backing " + std::string(name_of(backing_)) + ": device " + std::to_string(device) + ": " + reason +
                "; slabs serve it");
  }
}

CUresult BlockPools::allow_access(int device, std::uint64_t address, std::uint64_t bytes) noexcept {
  const DevicePoolState *state = known_state(device);
  CUmemAccessDesc access[1 + kAllDevices];
  std::size_t count = 0;
  access[count++] = {{CU_MEM_LOCATION_TYPE_DEVICE, handle_of(device)}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  const std::uint64_t peers = state != nullptr ? state->peers.load() : 0;
  for (int peer = 0; peer < static_cast<int>(kAllDevices); ++peer) {
    if ((peers >> peer & 1) != 0 && peer != device) {
      access[count++] = {{CU_MEM_LOCATION_TYPE_DEVICE, handle_of(peer)}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    }
  }
  return real.cuMemSetAccess(address, bytes, access, count);
}

void BlockPools::let_peers_in(int device, ContextPool &pool) {
  for (const pool::stitch::FreeRanges::Range &each : pool.blocks.everything().mappings) {
    (void)allow_access(device, each.address, each.bytes);
  }
}

// Granules that are mapped meanwhile see the new peer, or are in the list.
void BlockPools::peer_may_access(int device, int peer) noexcept try {
  if (backing_ == Backing::slab || peer < 0 || peer >= static_cast<int>(kAllDevices) || device < 0 ||
      device >= ledger::kMaxDevices || peer == device) {
    return;
  }
  DevicePoolState &state = state_of(device);
  if ((state.peers.fetch_or(std::uint64_t{1} << peer) >> peer & 1) != 0) {
    return;
  }
  const RelaxedCapture relaxed;
  for (const ContextRef &context : pooled_on(device)) {
    ContextPool &pool = *existing_pool(*context);
    const ContextPool::InFlight in_flight(pool);
    let_peers_in(device, pool);
  }
} catch (...) {  // no memory of the host
}

void BlockPools::note_granule(std::uint64_t handle, std::uint64_t bytes, const char *why, const Context &context,
                              std::uint64_t duration_ns) {
  const std::uint64_t id = last_slab_.fetch_add(1, std::memory_order_relaxed) + 1;
  {
    const Guard guard(granules_mutex_);
    granule_ids_.emplace(handle, id);
  }
  events::SlabAlloc event{handle, bytes, context.device, context.number, id, "cuMemCreate", why, duration_ns};
  event.granule = true;
  journal_.record(event);
  slab_taken(state_of(context.device), context.device, bytes);
}

void BlockPools::note_granule_end(std::uint64_t handle, std::uint64_t bytes, const char *api,
                                  const Context &context) noexcept {
  std::uint64_t id = 0;
  {
    const Guard guard(granules_mutex_);
    const auto found = granule_ids_.find(handle);
    if (found != granule_ids_.end()) {
      id = found->second;
      granule_ids_.erase(found);
    }
  }
  journal_.record(events::SlabFree{handle, bytes, context.device, context.number, id, api, true});
  slab_gone(context.device, bytes);
}

BlockPools::Take BlockPools::take_granule(std::uint64_t bytes, const char *why, const Contexts::Current &where,
                                          DevicePoolState &state, ledger::Effort effort, pool::Slab &slab,
                                          CUresult &error) {
  std::vector<pool::Slab> parts;
  const Take taken = take_granules(bytes, bytes, why, where, state, effort, parts, error);
  if (taken == Take::taken) {
    slab = parts.front();
  }
  return taken;
}

BlockPools::Take BlockPools::take_granules(std::uint64_t bytes, std::uint64_t most_bytes, const char *why,
                                           const Contexts::Current &where, DevicePoolState &state,
                                           ledger::Effort effort, std::vector<pool::Slab> &parts, CUresult &error) {
  bytes = bytes / state.page_bytes.load() * state.page_bytes.load();
  parts.clear();
  parts.reserve(bytes / most_bytes + 1);
  const auto create = [&](std::uint64_t each) {
    CUresult result = CUDA_SUCCESS;
    for (std::uint64_t left = bytes; left != 0 && result == CUDA_SUCCESS; left -= std::min(left, each)) {
      CUmemGenericAllocationHandle handle = 0;
      const std::uint64_t size = std::min(left, each);
      result = GranuleMemory::create_handle(handle_of(where.device), size, state.kind.load(), handle);
      if (result == CUDA_SUCCESS) {
        parts.push_back({0, size, handle});
      }
    }
    for (; result != CUDA_SUCCESS && !parts.empty(); parts.pop_back()) {
      if (const pool::Slab &last = parts.back(); real.cuMemRelease(last.id) != CUDA_SUCCESS) {
        ledger_.account(where.device).charge(last.bytes);
        unreturned_.add_handle(where.device, last.id, last.bytes);
      }
    }
    return result;
  };
  ledger::Account &account = ledger_.account(where.device);
  ledger::Transit transit(account.transits());
  const std::uint64_t start = journal_.logging() ? now_ns() : 0;
  const Take taken = obtain(bytes, where.device, state, effort, transit, error, [&] {
    const CUresult result = create(most_bytes);
    return result == CUDA_ERROR_OUT_OF_MEMORY && most_bytes < bytes ? create(bytes) : result;
  });
  if (taken != Take::taken) {
    return taken;
  }
  const std::uint64_t each_ns = start != 0 ? (now_ns() - start) / parts.size() : 0;
  std::size_t noted = 0;
  try {
    for (; noted < parts.size(); ++noted) {
      note_granule(parts[noted].id, parts[noted].bytes, why, *where.context, each_ns);
    }
  } catch (...) {  // no memory of the host: what is noted serves
    for (; parts.size() > noted; parts.pop_back()) {
      if (real.cuMemRelease(parts.back().id) == CUDA_SUCCESS) {
        account.release(parts.back().bytes);
      } else {
        unreturned_.add_handle(where.device, parts.back().id, parts.back().bytes);
      }
    }
    if (parts.empty()) {
      throw;
    }
  }
  account.request_publication();
  return Take::taken;
}

void BlockPools::return_granule(const char *api, const ContextRef &context, std::uint64_t handle,
                                std::uint64_t bytes) noexcept {
  GranuleMemory memory(*this, api, context);
  memory.release(handle, bytes);
}

// In granules of the sizes that a preallocation has; where the device has less, in smaller ones while it has any.
void BlockPools::preallocate_granules(const Request &request, const Contexts::Current &where, ContextPool &pool,
                                      DevicePoolState &state, std::uint64_t bytes) {
  GranuleMemory memory(*this, request.api, where.context);
  const std::uint64_t page_bytes = state.page_bytes.load();
  for (std::uint64_t size : pool::stitch::preallocation_sizes(bytes, page_bytes, pool.layout.granule_bytes)) {
    for (std::uint64_t left = size; left >= page_bytes;) {
      size = std::min(size, left);
      pool::Slab granule{};
      CUresult error = CUDA_SUCCESS;
      if (take_granule(size, "preallocate", where, state, ledger::Effort::kImmediate, granule, error) != Take::taken) {
        size = size / 2 / page_bytes * page_bytes;
        if (size == 0) {
          return;
        }
        continue;
      }
      if (!pool.blocks.add_granule(granule.id, granule.bytes, memory)) {
        return_granule(request.api, where.context, granule.id, granule.bytes);
        return;
      }
      left -= granule.bytes;
    }
  }
}

void BlockPools::release_unused(const char *api, const ContextRef &context) noexcept {
  ContextPool *const existing = existing_pool(*context);
  if (existing == nullptr || !existing->blocks.stitches()) {
    return;
  }
  ContextPool &pool = *existing;
  const ContextPool::InFlight in_flight(pool);
  const Pin pin(*context);
  if (!pin) {
    return;
  }
  const pool::Statistics held = pool.blocks.statistics();
  if (held.free_bytes == pool.layout.page_bytes && held.slab_bytes == held.free_bytes) {
    const RelaxedCapture relaxed;
    GranuleMemory memory(*this, api, context);
    (void)pool.blocks.release_granules(UINT64_MAX, memory);
  }
}

// Nothing waits for it: what is in no block is clean. REQUIRES: the quarantine was asked lately.
std::uint64_t BlockPools::give_back_granules(const Room::Need &need) noexcept try {
  std::uint64_t released = 0;
  std::uint64_t granules = 0;
  ledger::Transit transit(ledger_.account(need.device).transits());
  for (const ContextRef &context : pooled_on(need.device)) {
    ContextPool &pool = *existing_pool(*context);
    if (&pool == need.asking || !pool.blocks.stitches()) {
      continue;
    }
    const ContextPool::InFlight in_flight(pool);
    const Pin pin(*context);
    if (!pin) {
      continue;
    }
    std::uint64_t wanted = need.bytes == 0 ? UINT64_MAX : need.bytes - std::min(need.bytes, released);
    for (std::uint64_t part = 0, gone = 0; wanted != 0 && gone >= part; wanted -= std::min(wanted, gone)) {
      // The end of this puts what was released into the ledger: who waits for it sees it come.
      GranuleMemory memory(*this, need.api, context);
      part = std::min(wanted, std::max(kLeastGift, wanted / kGifts));
      gone = pool.blocks.release_granules(part, memory);
      released += gone;
      granules += memory.released();
    }
  }
  if (released > 0) {
    transit.hold();
    journal_.record(events::Trim{need.device, need.api, 0, released, granules});
  }
  return released;
} catch (...) {  // no memory of the host to list the pools
  return 0;
}

// Unlike slabs, granules do not go with their context.
void BlockPools::end_granules(const char *api, const ContextRef &context, ContextPool &pool) noexcept {
  if (!pool.blocks.stitches()) {
    return;
  }
  const RelaxedCapture relaxed;
  {
    GranuleMemory memory(*this, api, context);
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
  give_up_addresses(api, *context, pool);
  unreturned_.retry();
}

void BlockPools::give_up_addresses(const char *api, const Context &context, ContextPool &pool) noexcept {
  if (pool.blocks.stitches()) {
    journal_.record(events::SlabFree{pool.layout.home, 0, context.device, context.number, pool.layout.slab, api});
    slabs_.erase(pool.layout.home, context);
    unreturned_.give_up(pool.layout);
  }
}

}  // namespace ration::policy
