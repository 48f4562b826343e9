#include "policy/calls/queries.h"

#include <algorithm>
#include <cstring>

#include "base/saturating.h"
#include "policy/calls/call_parts.h"

namespace ration::policy {
namespace {

// Larger than any identifier of the driver's own.
constexpr std::uint64_t kOwnIds = std::uint64_t{1} << 63;

template <class Value>
void put(void *data, Value value) {
  std::memcpy(data, &value, sizeof(value));
}

// The block around an address, if it is of a pool, of mode async, or imported.
std::optional<IpcImporter::Range> block_around(const CallParts &parts, CUdeviceptr address) {
  if (parts.async_pools.covers(address)) {
    return std::nullopt;
  }
  if (const ContextRef owner = parts.pools.slabs.owner_of(address)) {
    const std::optional<pool::Block> block = block_at(address, *owner);
    return block ? std::optional(IpcImporter::Range{block->address, block->requested}) : std::nullopt;
  }
  CUdeviceptr base = 0;
  if (const std::optional<Block> served = parts.async_memory.block_at(address, &base)) {
    return IpcImporter::Range{base, served->size};  // to the driver it may be larger (DeferredFrees::take_retained)
  }
  return parts.imports.block_at(address);
}

}  // namespace

void Queries::present_memory(std::size_t *free_bytes, std::size_t *total_bytes) {
  const Contexts::Current where = parts_.admission.current();
  const Device *device = parts_.devices.find(where.device);
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
  if (parts_.devices.heed(device.ordinal)) {
    parts_.pools.gifts.heed_orders("set");
  }
  parts_.account(device.ordinal).reclaim_from_dead();  // the dead no longer state a limit
  const std::uint64_t own =
      device.limit_asked.load(std::memory_order_relaxed) ? device.limit.load(std::memory_order_relaxed) : UINT64_MAX;
  const std::uint64_t limit = std::min(own, parts_.account(device.ordinal).group_limit());
  return parts_.options.show_limit && limit != UINT64_MAX ? std::optional(limit) : std::nullopt;
}

// The program can have all that our own pools hold free. Within the limits, it can also have what the device has free
// and what others hold and do not use.
std::uint64_t Queries::free_on(const char *api, const Device &device, std::uint64_t really_free,
                               const std::optional<std::uint64_t> &shown) {
  parts_.pending.poll(device.ordinal);
  parts_.stream_pools.reconcile_all(api, device.ordinal);
  parts_.room.release_orphans(api, device.ordinal);
  parts_.pools.gifts.give_to_others(api, device.ordinal);
  parts_.overhead.correct(device.ordinal);
  const ledger::Account::Obtainable all = parts_.account(device.ordinal).obtainable();
  const std::uint64_t obtainable = std::min(plus_or_most(really_free, all.of_others), all.within_limits);
  const std::uint64_t total = device.total.load(std::memory_order_relaxed);
  const std::uint64_t held =
      parts_.pools.returning.free_bytes(device.ordinal) + parts_.async_pools.free_bytes(device.ordinal);
  return std::min(minus_or_zero(held, parts_.account(device.ordinal).excess()) + obtainable,
                  shown.value_or(total == 0 ? device.limit.load(std::memory_order_relaxed) : total));
}

Presented Queries::present_device(std::string_view uuid, bool alone, MemoryFigures &memory) {
  const std::vector<Device> *devices = parts_.devices.all();
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
  const std::uint64_t charged = parts_.account(meant->ordinal).charged();
  memory.idle = parts_.pools.returning.free_bytes(meant->ordinal) + parts_.async_pools.free_bytes(meant->ordinal);
  memory.own = shown ? std::optional(minus_or_zero(charged, memory.idle)) : std::nullopt;
  return Presented::yes;
}

void Queries::present_total(std::size_t *total_bytes, CUdevice handle) {
  const Device *device = parts_.devices.find_handle(handle);
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
  const std::optional<IpcImporter::Range> block = block_around(parts_, address);
  handled = block || is_dead(address);
  if (!handled) {
    return CUDA_SUCCESS;
  }
  const CUresult result = in_context(block ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND);
  if (result == CUDA_SUCCESS && base != nullptr) {
    *base = block->base;
  }
  if (result == CUDA_SUCCESS && bytes != nullptr) {
    *bytes = block->bytes;
  }
  return result;
}

bool Queries::is_dead(CUdeviceptr address) {
  if (const ContextRef owner = parts_.pools.slabs.owner_of(address)) {
    return !policy::block_at(address, *owner);
  }
  return parts_.async_pools.covers(address) || (parts_.imports.covers(address) && !parts_.imports.block_at(address));
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
      if (const std::optional<bool> marked = parts_.sync_memops.is_marked(address)) {
        put(data, *marked ? 1U : 0U);
      }
      return;
    }
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE: {
      std::uintptr_t pool = 0;
      std::memcpy(&pool, data, sizeof(pool));
      if (parts_.options.async && parts_.async_pools.owns_handle(pool)) {
        put(data, std::uintptr_t{0});
      } else {
        put(data, reinterpret_cast<std::uintptr_t>(parts_.default_pools.shown(reinterpret_cast<CUmemoryPool>(pool))));
      }
      return;
    }
    case CU_POINTER_ATTRIBUTE_CONTEXT:
      (void)write_context(address, data);
      return;
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
      if (const ContextRef owner = owner_in_granules(address)) {
        put(data, parts_.pools.granules.can_share(owner->device));
      }
      return;
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
      if (owner_in_granules(address) != nullptr || parts_.imports.opener_in_granules(address) != nullptr) {
        put(data, 0U);  // the program cannot export it
      }
      return;
    default:
      return;
  }
}

bool Queries::write_context(CUdeviceptr address, void *data) {
  if (data == nullptr) {
    return false;
  }
  if (const std::optional<Block> block = parts_.async_memory.block_at(address)) {
    put(data, reinterpret_cast<std::uintptr_t>(block->context->handle));
    return true;
  }
  // Granules belong to no context of the driver's.
  ContextRef owner = owner_in_granules(address);
  owner = owner != nullptr ? owner : parts_.imports.opener_in_granules(address);
  if (owner == nullptr || in_context(CUDA_SUCCESS) != CUDA_SUCCESS) {
    return false;
  }
  put(data, reinterpret_cast<std::uintptr_t>(owner->handle));
  return true;
}

ContextRef Queries::owner_in_granules(CUdeviceptr address) {
  ContextRef owner = parts_.pools.slabs.owner_of(address);
  return owner != nullptr && has_granules(*owner) && policy::block_at(address, *owner) ? owner : nullptr;
}

std::uint64_t Queries::buffer_id(CUdeviceptr address) {
  const ContextRef owner = parts_.pools.slabs.owner_of(address);
  if (owner == nullptr && !parts_.imports.covers(address)) {
    return 0;
  }
  const std::uint64_t fresh = kOwnIds | ids_given_.fetch_add(1, std::memory_order_relaxed);
  return owner != nullptr ? existing_pool(*owner)->blocks.name(address, fresh) : parts_.imports.name(address, fresh);
}

CUresult Queries::set_attribute(CUpointer_attribute attribute, CUdeviceptr address, const void *value,
                                DriverCall call) {
  if (attribute != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS || value == nullptr ||
      (parts_.pools.slabs.owner_of(address) == nullptr && !parts_.imports.covers(address) &&
       !parts_.async_pools.covers(address))) {
    return call();
  }
  if (is_dead(address)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  unsigned wanted = 0;
  std::memcpy(&wanted, value, sizeof(wanted));
  const Contexts::Current where = parts_.admission.current();
  const CUresult result = wanted != 0 && !parts_.sync_memops.is_kept_here(address) ? call() : where.error;
  if (result != CUDA_SUCCESS) {
    return result;
  }
  return parts_.sync_memops.mark(address, wanted != 0) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

}  // namespace ration::policy
