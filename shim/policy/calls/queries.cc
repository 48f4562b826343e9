#include "policy/calls/queries.h"

#include <algorithm>
#include <cstring>

namespace ration::policy {
namespace {

// Beyond the identifiers of any driver's own.
constexpr std::uint64_t kOwnIds = std::uint64_t{1} << 63;

template <class Value>
void put(void *data, Value value) {
  std::memcpy(data, &value, sizeof(value));
}

}  // namespace

void Queries::present_memory(std::size_t *free_bytes, std::size_t *total_bytes) {
  const Contexts::Current where = admission_.current();
  const Device *device = devices_.find(where.device);
  if (device == nullptr) {
    return;
  }
  const std::optional<std::uint64_t> shown = shown_limit(*device);
  if (free_bytes != nullptr) {
    *free_bytes = free_on("cuMemGetInfo_v2", *device, *free_bytes, shown);
  }
  if (shown && total_bytes != nullptr) {
    *total_bytes = std::min<std::uint64_t>(*total_bytes, *shown);
  }
}

std::optional<std::uint64_t> Queries::shown_limit(const Device &device) const {
  if (devices_.heed(device.ordinal)) {
    pools_.gifts.heed_orders("set");
  }
  ledger_.account(device.ordinal).reclaim_from_dead();  // which state no limit any more
  const std::uint64_t own =
      device.limit_asked.load(std::memory_order_relaxed) ? device.limit.load(std::memory_order_relaxed) : UINT64_MAX;
  const std::uint64_t limit = std::min(own, ledger_.account(device.ordinal).group_limit());
  return show_limit_ && limit != UINT64_MAX ? std::optional(limit) : std::nullopt;
}

// What our own pools hold is the program's to have, and what others hold and do not use; of the rest the limits and the
// device decide.
std::uint64_t Queries::free_on(const char *api, const Device &device, std::uint64_t really_free,
                               const std::optional<std::uint64_t> &shown) {
  pending_.poll(device.ordinal);
  stream_pools_.reconcile_all(api, device.ordinal);
  room_.release_orphans(api, device.ordinal);
  pools_.gifts.give_to_others(api, device.ordinal);
  overhead_.correct(device.ordinal);
  const ledger::Account::Obtainable all = ledger_.account(device.ordinal).obtainable();
  const std::uint64_t obtainable =
      std::min(really_free + std::min(all.of_others, UINT64_MAX - really_free), all.within_limits);
  const std::uint64_t total = device.total.load(std::memory_order_relaxed);
  const std::uint64_t held = pools_.returning.free_bytes(device.ordinal) + async_pools_.free_bytes(device.ordinal);
  return std::min(held - std::min(held, ledger_.account(device.ordinal).excess()) + obtainable,
                  shown.value_or(total == 0 ? device.limit.load(std::memory_order_relaxed) : total));
}

Presented Queries::present_device(std::string_view uuid, bool alone, MemoryFigures &memory) {
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
  const std::optional<std::uint64_t> shown = shown_limit(*meant);
  memory.show(shown, free_on("nvmlDeviceGetMemoryInfo", *meant, memory.free, shown));
  const std::uint64_t charged = ledger_.account(meant->ordinal).charged();
  memory.idle = pools_.returning.free_bytes(meant->ordinal) + async_pools_.free_bytes(meant->ordinal);
  memory.own = shown ? std::optional(charged - std::min(charged, memory.idle)) : std::nullopt;
  return Presented::yes;
}

void Queries::present_total(std::size_t *total_bytes, CUdevice handle) {
  const Device *device = devices_.find_handle(handle);
  const std::optional<std::uint64_t> shown = device != nullptr ? shown_limit(*device) : std::nullopt;
  if (shown && total_bytes != nullptr) {
    *total_bytes = std::min<std::uint64_t>(*total_bytes, *shown);
  }
}

CUresult Queries::in_context(CUresult code) {
  CUdevice device = 0;
  const CUresult error = driver::real.cuCtxGetDevice(&device);
  const bool of_thread = error == CUDA_ERROR_INVALID_CONTEXT || error == CUDA_ERROR_CONTEXT_IS_DESTROYED ||
                         error == CUDA_ERROR_NOT_PERMITTED;  // in a host function
  return of_thread ? error : code;
}

CUresult Queries::address_range(CUdeviceptr address, CUdeviceptr *base, std::size_t *bytes, bool &handled) {
  if (async_.is_deferred(address)) {
    handled = true;
    return in_context(CUDA_ERROR_NOT_FOUND);
  }
  IpcImporter::Range range{};
  if (const ContextRef owner = pools_.slabs.owner_of(address)) {
    handled = true;
    const std::optional<pool::Block> block = policy::block_at(address, *owner);
    if (!block) {
      return in_context(CUDA_ERROR_NOT_FOUND);
    }
    range = {block->address, block->requested};
  } else if (const std::optional<Block> served = async_.block_at(address, &range.base)) {
    handled = true;
    range.bytes = served->size;  // to the driver it may be larger (DeferredFrees::take_retained)
  } else {
    handled = imports_.covers(address);
    if (!handled) {
      return CUDA_SUCCESS;
    }
    const std::optional<IpcImporter::Range> block = imports_.block_at(address);
    if (!block) {
      return in_context(CUDA_ERROR_NOT_FOUND);
    }
    range = *block;
  }
  if (const CUresult error = in_context(CUDA_SUCCESS); error != CUDA_SUCCESS) {
    return error;
  }
  if (base != nullptr) {
    *base = range.base;
  }
  if (bytes != nullptr) {
    *bytes = range.bytes;
  }
  return CUDA_SUCCESS;
}

bool Queries::is_dead(CUdeviceptr address) {
  if (const ContextRef owner = pools_.slabs.owner_of(address)) {
    return !policy::block_at(address, *owner);
  }
  return async_.is_deferred(address) || (imports_.covers(address) && !imports_.block_at(address));
}

void Queries::correct_attribute(CUpointer_attribute attribute, CUdeviceptr address, void *data) {
  if (data == nullptr) {
    return;
  }
  CUdeviceptr base = 0;
  std::size_t bytes = 0;
  bool handled = false;
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
      if (address_range(address, &base, &bytes, handled) == CUDA_SUCCESS && handled) {
        put(data, base);
      }
      return;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
      if (address_range(address, &base, &bytes, handled) == CUDA_SUCCESS && handled) {
        put(data, bytes);
      }
      return;
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
      if (const std::uint64_t name = buffer_id(address)) {
        put(data, static_cast<unsigned long long>(name));
      }
      return;
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS: {
      if (const std::optional<bool> marked = sync_memops_.is_marked(address)) {
        put(data, *marked ? 1U : 0U);
      }
      return;
    }
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE: {
      std::uintptr_t pool = 0;
      std::memcpy(&pool, data, sizeof(pool));
      if (async_.enabled() && async_pools_.owns_handle(pool)) {
        put(data, std::uintptr_t{0});
      } else {
        put(data, reinterpret_cast<std::uintptr_t>(default_pools_.shown(reinterpret_cast<CUmemoryPool>(pool))));
      }
      return;
    }
    case CU_POINTER_ATTRIBUTE_CONTEXT:
      (void)write_context(address, data);
      return;
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
      if (const ContextRef owner = owner_in_granules(address)) {
        put(data, pools_.granules.can_share(owner->device));
      }
      return;
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
      if (owner_in_granules(address) != nullptr || imports_.opener_in_granules(address) != nullptr) {
        put(data, 0U);  // the program cannot export it
      }
      return;
    default:
      return;
  }
}

bool Queries::write_context(CUdeviceptr address, void *data) {
  const std::optional<Block> block = data != nullptr ? async_.block_at(address) : std::nullopt;
  if (block) {
    put(data, reinterpret_cast<std::uintptr_t>(block->context->handle));
    return true;
  }
  // Granules belong to no context of the driver's.
  ContextRef owner = data != nullptr ? owner_in_granules(address) : nullptr;
  if (owner == nullptr && data != nullptr) {
    owner = imports_.opener_in_granules(address);
  }
  if (owner != nullptr && in_context(CUDA_SUCCESS) == CUDA_SUCCESS) {
    put(data, reinterpret_cast<std::uintptr_t>(owner->handle));
    return true;
  }
  return false;
}

ContextRef Queries::owner_in_granules(CUdeviceptr address) {
  ContextRef owner = pools_.slabs.owner_of(address);
  return owner != nullptr && has_granules(*owner) && policy::block_at(address, *owner) ? owner : nullptr;
}

std::uint64_t Queries::buffer_id(CUdeviceptr address) {
  const ContextRef owner = pools_.slabs.owner_of(address);
  if (owner == nullptr && !imports_.covers(address)) {
    return 0;
  }
  const std::uint64_t fresh = kOwnIds | ids_given_.fetch_add(1, std::memory_order_relaxed);
  return owner != nullptr ? existing_pool(*owner)->blocks.name(address, fresh) : imports_.name(address, fresh);
}

CUresult Queries::set_attribute(CUpointer_attribute attribute, CUdeviceptr address, const void *value,
                                DriverCall call) {
  if (attribute != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS || value == nullptr ||
      (pools_.slabs.owner_of(address) == nullptr && !imports_.covers(address) && !async_.is_deferred(address))) {
    return call();
  }
  if (is_dead(address)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  unsigned wanted = 0;
  std::memcpy(&wanted, value, sizeof(wanted));
  const Contexts::Current where = admission_.current();
  const CUresult result = wanted != 0 && !sync_memops_.is_kept_here(address) ? call() : where.error;
  if (result != CUDA_SUCCESS) {
    return result;
  }
  return sync_memops_.mark(address, wanted != 0) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

}  // namespace ration::policy
