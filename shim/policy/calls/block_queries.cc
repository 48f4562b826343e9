// Questions about an address, answered for the block around it and not for the slab that the driver knows.
// Layer: policy. Threads: any; no lock is held across a driver call.
//
// SYNC_MEMOPS (that cuMemcpy and its like on this memory always wait) the driver knows of a slab only. Where one block
// asks for it the slab has it from then on: its other blocks may wait where they need not, but do not tell so, and none
// ever waits less than it asked for.
#include <cstring>

#include "policy/calls/policy.h"

namespace ration::policy {
namespace {

// Beyond the identifiers of any driver's own.
constexpr std::uint64_t kOwnNames = std::uint64_t{1} << 63;

template <class Value>
void put(void *data, Value value) {
  std::memcpy(data, &value, sizeof(value));
}

}  // namespace

CUresult Policy::address_range(CUdeviceptr address, CUdeviceptr *base, std::size_t *bytes, bool &handled) {
  if (async_.covers(address)) {
    handled = true;
    return CUDA_ERROR_INVALID_VALUE;
  }
  IpcImporter::Range range{};
  if (const ContextRef owner = pools_.owner_of(address)) {
    handled = true;
    const std::optional<pool::Block> block = pools_.block_at(address, owner);
    if (!block) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    range = {block->address, block->requested};
  } else {
    handled = imports_.covers(address);
    if (!handled) {
      return CUDA_SUCCESS;
    }
    const std::optional<IpcImporter::Range> block = imports_.block_at(address);
    if (!block) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    range = *block;
  }
  if (base != nullptr) {
    *base = range.base;
  }
  if (bytes != nullptr) {
    *bytes = range.bytes;
  }
  return CUDA_SUCCESS;
}

bool Policy::is_dead(CUdeviceptr address) {
  if (const ContextRef owner = pools_.owner_of(address)) {
    return !pools_.block_at(address, owner);
  }
  return async_.covers(address) || (imports_.covers(address) && !imports_.block_at(address));
}

void Policy::correct_attribute(CUpointer_attribute attribute, CUdeviceptr address, void *data) {
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
      if (const std::uint64_t name = name_of(address)) {
        put(data, static_cast<unsigned long long>(name));
      }
      return;
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS: {
      const std::optional<bool> marked = is_marked(address);
      if (marked && !*marked) {
        put(data, 0U);
      }
      return;
    }
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE: {
      std::uintptr_t pool = 0;
      std::memcpy(&pool, data, sizeof(pool));
      if (options_.async && async_.owns_handle(pool)) {
        put(data, std::uintptr_t{0});
      }
      return;
    }
    case CU_POINTER_ATTRIBUTE_CONTEXT:
      (void)tell_context(address, data);
      return;
    default:
      return;
  }
}

bool Policy::tell_context(CUdeviceptr address, void *data) {
  const std::optional<Block> block = data != nullptr ? async_block_at(address) : std::nullopt;
  if (block) {
    put(data, reinterpret_cast<std::uintptr_t>(block->context->handle));
  }
  return block.has_value();
}

std::uint64_t Policy::name_of(CUdeviceptr address) {
  const ContextRef owner = pools_.owner_of(address);
  if (owner == nullptr && !imports_.covers(address)) {
    return 0;
  }
  const std::uint64_t fresh = kOwnNames | names_given_.fetch_add(1, std::memory_order_relaxed);
  return owner != nullptr ? pools_.blocks_of(owner).name(address, fresh) : imports_.name(address, fresh);
}

std::optional<bool> Policy::is_marked(CUdeviceptr address) {
  if (const ContextRef owner = pools_.owner_of(address)) {
    return pools_.blocks_of(owner).is_marked(address);
  }
  return imports_.is_marked(address);
}

CUresult Policy::set_attribute(CUpointer_attribute attribute, CUdeviceptr address, const void *value,
                               const std::function<CUresult()> &act) {
  const ContextRef owner = pools_.owner_of(address);
  if (attribute != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS || value == nullptr ||
      (owner == nullptr && !imports_.covers(address) && !async_.covers(address))) {
    return act();
  }
  if (is_dead(address)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  unsigned wanted = 0;
  std::memcpy(&wanted, value, sizeof(wanted));
  const Contexts::Current where = contexts_.current();
  const CUresult result = wanted != 0 ? act() : where.error;
  if (result != CUDA_SUCCESS) {
    return result;
  }
  const bool marked =
      owner != nullptr ? pools_.blocks_of(owner).mark(address, wanted != 0) : imports_.mark(address, wanted != 0);
  return marked ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

}  // namespace ration::policy
