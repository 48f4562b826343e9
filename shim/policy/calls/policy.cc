#include "policy/calls/policy.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/clock.h"

namespace ration::policy {
namespace {

using driver::real;

// What the driver says is free on the current device; 0 where it does not say.
std::uint64_t device_free() {
  const RelaxedCapture relaxed;
  return really_free().value_or(0);
}

}  // namespace

Policy::Policy(const Options &options, LimitSource &limits, events::JournalOptions journal, std::string &problem)
    : options_(options),
      journal_(std::move(journal), problem),
      devices_(limits, ledger_),
      contexts_(devices_),
      pending_(ledger_, [this](const PhysicalMemory::PieceRef &piece) { end_piece("cuMemMapArrayAsync", piece); }),
      stream_pools_(ledger_, journal_),
      pools_(devices_, ledger_, journal_, contexts_, pending_, stream_pools_, fast_paths_, options.synchronous_free,
             limits.state_folder()),
      async_(devices_, contexts_, ledger_, journal_, stream_pools_, pools_.fences(), options.deterministic),
      imports_(pools_.fences(), limits.state_folder()) {}

void Policy::describe() {
  if (journal_.described() || devices_.all() == nullptr) {
    return;
  }
  int version = 0;
  if (real.cuDriverGetVersion.present()) {
    real.cuDriverGetVersion(&version);
  }
  std::vector<events::DeviceFacts> facts = devices_.facts();
  for (events::DeviceFacts &device : facts) {
    const Device *known = options_.async ? devices_.find(device.ordinal) : nullptr;
    device.mode = known != nullptr && !AsyncPools::supported_on(known->handle) ? "pool" : "";
  }
  journal_.describe(std::move(facts), version);
}

void Policy::record_oom(const char *api, std::uint64_t requested, int device, events::Reason reason, const Context *of,
                        bool sharing) {
  const ledger::Account &account = ledger_.account(device);
  const Device *known = devices_.find(device);
  const std::uint64_t total = known != nullptr ? known->total.load(std::memory_order_relaxed) : 0;
  const std::uint64_t limit = account.limit() == UINT64_MAX ? total : account.limit();
  const std::uint64_t free_bytes = device_free();
  const std::uint64_t charged = account.charged();
  events::Oom event{device,  api,   requested,  reason,
                    charged, limit, free_bytes, std::min(account.available(), free_bytes)};
  event.reserved = charged;
  event.sharing = sharing;
  if (reason == events::Reason::group) {
    explain_group(account, event.group);
  }
  pools_.explain(event, of);
  event.quarantined += async_.deferred_bytes(device);
  journal_.record(event);
  pools_.tell(device);
}

// What `ration ps` would say of the group that leaves least.
void Policy::explain_group(const ledger::Account &account, events::GroupState &group) {
  int place = -1;
  const ledger::Membership *const tightest = account.tightest(place);
  if (tightest == nullptr) {
    return;
  }
  constexpr std::size_t kMostHolders = 8;
  group.name = (tightest->kind() == ledger::GroupKind::kTree ? "tree:" : "") + tightest->name();
  group.limit = tightest->limit(place);
  group.reserved = tightest->total(place);
  for (ledger::Holder &holder : tightest->holders(place, kMostHolders)) {
    group.holders.push_back({holder.pid, std::move(holder.program), holder.reserved});
  }
}

events::Via Policy::via_of(const Request &request) const {
  return journal_.logging() && via_of_ != nullptr ? via_of_(request.caller) : events::Via::driver;
}

CUresult Policy::allocate(const Request &request, const Act &act, CUdeviceptr *address) {
  const bool pooled = request.pooled && !(options_.large_direct && request.upper_bound >= kLargeBytes);
  if (pooled && pools_.allocate_hit(request.upper_bound, address)) {
    return CUDA_SUCCESS;
  }
  describe();
  imports_.settle();
  if (devices_.limit_unknown()) {
    return refuse_unknown(act, undo_free);
  }
  const Contexts::Current where = contexts_.current();
  devices_.learn_total(where.device);
  if (options_.async && pooled && where.error == CUDA_SUCCESS) {
    if (const StreamPools::PoolRef pool = async_.pool_on(where.device)) {
      return allocate_async(request, where, pool, address);
    }
  }
  if (!options_.pool || !pooled || where.error != CUDA_SUCCESS || !BlockPools::possible()) {
    return allocate_direct(request, where, act, address);
  }
  std::optional<events::Reason> denied;
  const CUresult result = pools_.allocate(request, where, via_of(request), address, denied);
  if (!denied) {
    if (result != CUDA_SUCCESS) {
      journal_.count_failed_alloc();
    }
    return result;
  }
  // A slab needs a granule more than its block: what fits to the last byte the driver can still serve by itself.
  const ledger::Account &account = ledger_.account(where.device);
  const bool no_slab_ever = pool::Pool::slab_bytes_for(request.upper_bound) > account.limit();
  if ((*denied == events::Reason::limit || *denied == events::Reason::group) &&
      (request.upper_bound <= account.available() ||
       (no_slab_ever && pools_.make_room(request.api, where.device, request.upper_bound)))) {
    return allocate_direct(request, where, act, address);
  }
  return deny(request, where, *denied);
}

CUresult Policy::free(const char *api, CUdeviceptr address, const std::function<CUresult()> &act) {
  if (pools_.free_hit(address)) {
    return CUDA_SUCCESS;
  }
  describe();
  if (const ContextRef owner = address != 0 ? pools_.owner_of(address) : nullptr) {
    return pools_.free(api, address, owner);
  }
  if (async_.covers(address)) {
    return refuse_dead();
  }
  return end_with(book_, api, address, act);
}

// Freed before, and to the driver still a block.
CUresult Policy::refuse_dead() {
  journal_.count_failed_free();
  const CUresult state = pools_.state_of_caller();
  return state != CUDA_SUCCESS ? state : CUDA_ERROR_INVALID_VALUE;
}

CUresult Policy::free_host(const char *api, const void *address, const std::function<CUresult()> &act) {
  describe();
  return end_with(book_, api, reinterpret_cast<std::uintptr_t>(address), act);
}

CUresult Policy::end_with(AddressBook &book, const char *api, std::uint64_t address,
                          const std::function<CUresult()> &act) {
  if (address == 0) {
    journal_.count_null_free();
    return act();
  }
  Block block;
  switch (book.begin_end(address, block)) {
    case AddressBook::Found::ending_elsewhere:
      // Another thread is freeing it: forwarded now, this call could free whoever gets the address next.
      journal_.count_failed_free();
      return CUDA_ERROR_INVALID_VALUE;
    case AddressBook::Found::unknown: {
      const CUresult result = act();
      if (result != CUDA_SUCCESS) {
        journal_.count_failed_free();
      }
      return result;
    }
    case AddressBook::Found::begun:
      break;
  }
  const bool deferred = async_.owns(block.pool);
  const CUresult result = deferred ? defer_free(address, block) : act();
  if (result != CUDA_SUCCESS) {
    keep_block(book, {address, block});
    return result;
  }
  end_block(api, {address, block});
  book.finish_end(address);
  return deferred ? finish_deferred(api, block.device) : result;
}

CUresult Policy::free_in_stream(const char *api, CUdeviceptr address, CUstream stream,
                                const std::function<CUresult()> &act) {
  describe();
  if (const ContextRef owner = pools_.owner_of(address)) {
    return pools_.free_in_stream(api, address, stream, owner);
  }
  if (async_.covers(address)) {
    return refuse_dead();
  }
  Block block;
  const AddressBook::Found found = address != 0 ? book_.begin_end(address, block) : AddressBook::Found::unknown;
  if (found == AddressBook::Found::ending_elsewhere) {
    journal_.count_failed_free();
    return CUDA_ERROR_INVALID_VALUE;
  }
  const CUresult result = act();
  if (result != CUDA_SUCCESS) {
    if (found == AddressBook::Found::begun) {
      keep_block(book_, {address, block});
    } else {
      journal_.count_failed_free();
    }
    return result;
  }
  if (found == AddressBook::Found::begun) {
    record_end(api, address, block, stream);
    book_.finish_end(address);
    if (block.pool != nullptr) {
      stream_pools_.block_ended(*block.pool);
    } else if (block.charged) {
      pending_.add(block.context, block.device, block.size, stream);
    }
  }
  return result;
}

void Policy::present_memory(std::size_t *free_bytes, std::size_t *total_bytes) {
  describe();
  const Contexts::Current where = contexts_.current();
  devices_.learn_total(where.device);
  const Device *device = devices_.find(where.device);
  if (device == nullptr) {
    return;
  }
  if (free_bytes != nullptr) {
    *free_bytes = free_on("cuMemGetInfo_v2", *device, *free_bytes);
  }
  if (total_bytes != nullptr && shows_limit(*device)) {
    *total_bytes = std::min<std::uint64_t>(*total_bytes, device->limit.load(std::memory_order_relaxed));
  }
}

// What our own pools hold is the program's to have; of the rest the limits and the device decide.
std::uint64_t Policy::free_on(const char *api, const Device &device, std::uint64_t really_free) {
  pending_.settle(device.ordinal, false);
  stream_pools_.settle_all(api, device.ordinal);
  pools_.look_for_orphans(api, device.ordinal);
  ledger_.account(device.ordinal).look_for_dead();
  const std::uint64_t obtainable = std::min(really_free, ledger_.account(device.ordinal).available());
  const std::uint64_t total = device.total.load(std::memory_order_relaxed);
  return std::min(pools_.free_bytes(device.ordinal) + async_.free_bytes(device.ordinal) + obtainable,
                  shows_limit(device) || total == 0 ? device.limit.load(std::memory_order_relaxed) : total);
}

Presented Policy::present_device(std::string_view uuid, bool alone, DeviceMemory &memory) {
  const std::vector<Device> *devices = devices_.all();
  if (devices == nullptr) {
    return Presented::not_known_yet;
  }
  const auto meant = std::find_if(devices->begin(), devices->end(), [&](const Device &device) {
    return same_uuid(uuid, device.uuid) || (alone && devices->size() == 1 && (uuid.empty() || device.uuid.empty()));
  });
  if (meant == devices->end() || meant->total.load(std::memory_order_relaxed) == 0) {
    return Presented::untouched;
  }
  const std::optional<std::uint64_t> shown =
      shows_limit(*meant) ? std::optional(meant->limit.load(std::memory_order_relaxed)) : std::nullopt;
  memory.show(shown, free_on("nvmlDeviceGetMemoryInfo", *meant, memory.free));
  return Presented::yes;
}

void Policy::present_total(std::size_t *total_bytes, CUdevice handle) {
  describe();
  const Device *device = devices_.find_handle(handle);
  if (total_bytes != nullptr && device != nullptr && shows_limit(*device)) {
    *total_bytes = std::min<std::uint64_t>(*total_bytes, device->limit.load(std::memory_order_relaxed));
  }
}

}  // namespace ration::policy
