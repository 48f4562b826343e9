// The memory-pool calls of the public API: a device's pools, their properties and attributes. Only device memory is
// pooled here. Layer: mem_pool.h. Threads: any.
#include <algorithm>
#include <cstring>

#include "implemented.h"
#include "tests/simcuda/bytes.h"
#include "tests/simcuda/capture.h"
#include "tests/simcuda/device_attributes.h"
#include "tests/simcuda/entry.h"
#include "tests/simcuda/mem_pool.h"

namespace simcuda {
namespace {

CUresult read_pool(CUmemoryPool *out, CUdevice dev, std::shared_ptr<MemPool> (*which)(Device &)) {
  Device *device = nullptr;
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult error = device_of(dev, &device); error != CUDA_SUCCESS) return error;
  if (attribute_of(*device, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED) == 0) return CUDA_ERROR_NOT_SUPPORTED;
  const Lock lock(driver().mutex);
  *out = handle_of(which(*device).get());
  return CUDA_SUCCESS;
}

// Kinds of location that pool functions know but that are not simulated are no program error.
CUresult judge(const CUmemLocation &location, CUmemAllocationType type) {
  if (type != CU_MEM_ALLOCATION_TYPE_PINNED && type != CU_MEM_ALLOCATION_TYPE_MANAGED) return CUDA_ERROR_INVALID_VALUE;
  const bool managed = type == CU_MEM_ALLOCATION_TYPE_MANAGED;
  switch (location.type) {
    case CU_MEM_LOCATION_TYPE_DEVICE:
      return managed ? CUDA_ERROR_NOT_SUPPORTED : CUDA_SUCCESS;
    case CU_MEM_LOCATION_TYPE_HOST:
    case CU_MEM_LOCATION_TYPE_HOST_NUMA:
    case CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT:  // H100, H200, driver 580.159
      return CUDA_ERROR_NOT_SUPPORTED;
    case CU_MEM_LOCATION_TYPE_NONE:
      return managed ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_INVALID_VALUE;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

CUresult judge(const CUmemPoolProps &props) {
  const auto types = static_cast<unsigned>(props.handleTypes);
  // H100, H200, driver 580.159: win32SecurityAttributes are ignored.
  if ((props.usage & ~CU_MEM_POOL_CREATE_USAGE_HW_DECOMPRESS) != 0 ||
      std::any_of(std::begin(props.reserved), std::end(props.reserved), [](unsigned char byte) { return byte != 0; })) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (props.location.type == CU_MEM_LOCATION_TYPE_HOST && types != 0) return CUDA_ERROR_INVALID_VALUE;
  if (props.location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult error = judge(props.location, props.allocType); error != CUDA_SUCCESS) return error;
  Device *device = nullptr;
  if (device_of(props.location.id, &device) != CUDA_SUCCESS) return CUDA_ERROR_INVALID_VALUE;
  if (attribute_of(*device, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED) == 0) return CUDA_ERROR_NOT_SUPPORTED;
  const int known = attribute_of(*device, CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES);
  return props.usage != 0 || (types & ~static_cast<unsigned>(known)) != 0 ? CUDA_ERROR_NOT_SUPPORTED : CUDA_SUCCESS;
}

template <class Body>
CUresult with_pool(CUmemoryPool handle, Body body) {
  const Lock lock(driver().mutex);
  const std::shared_ptr<MemPool> pool = find_pool(handle);
  return pool == nullptr ? CUDA_ERROR_INVALID_VALUE : body(pool);
}

template <class Value>
Value read(const void *in) {
  Value value{};
  std::memcpy(&value, in, sizeof value);
  return value;
}

// Resets a high mark to the current value.
CUresult reset(std::uint64_t &high, std::uint64_t current, const void *value) {
  if (read<cuuint64_t>(value) != 0) return CUDA_ERROR_INVALID_VALUE;
  high = current;
  return CUDA_SUCCESS;
}

CUresult set(bool &allowed, const void *value) {
  allowed = read<int>(value) != 0;
  return CUDA_SUCCESS;
}

}  // namespace

CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *pool_out, CUdevice dev) {
  return read_pool(pool_out, dev, default_pool);
}
CUresult cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice dev) {
  return read_pool(pool, dev, current_pool);
}

CUresult cuDeviceSetMemPool(CUdevice dev, CUmemoryPool pool) {
  Device *device = nullptr;
  if (const CUresult error = device_of(dev, &device); error != CUDA_SUCCESS) return error;
  return with_pool(pool, [device](const std::shared_ptr<MemPool> &found) {
    if (found->device != device || found->origin) return CUDA_ERROR_INVALID_VALUE;
    device->current_pool = found;
    return CUDA_SUCCESS;
  });
}

CUresult cuMemGetDefaultMemPool(CUmemoryPool *pool_out, CUmemLocation *location, CUmemAllocationType type) {
  if (pool_out == nullptr || location == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult error = judge(*location, type); error != CUDA_SUCCESS) return error;
  return read_pool(pool_out, location->id, default_pool);
}

CUresult cuMemGetMemPool(CUmemoryPool *pool, CUmemLocation *location, CUmemAllocationType type) {
  if (pool == nullptr || location == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult error = judge(*location, type); error != CUDA_SUCCESS) return error;
  return read_pool(pool, location->id, current_pool);
}

CUresult cuMemSetMemPool(CUmemLocation *location, CUmemAllocationType type, CUmemoryPool pool) {
  if (location == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult error = judge(*location, type); error != CUDA_SUCCESS) return error;
  return simcuda::cuDeviceSetMemPool(location->id, pool);
}

CUresult cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *poolProps) {
  if (pool == nullptr || poolProps == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult error = judge(*poolProps); error != CUDA_SUCCESS) return error;
  const Lock lock(driver().mutex);
  if (const CUresult error = may_act_unseen(); error != CUDA_SUCCESS) return error;
  MemPool made;
  made.device = &driver().devices[static_cast<std::size_t>(poolProps->location.id)];
  made.handle_types = poolProps->handleTypes;
  // H200, driver 580.159: a maximum is rounded up to whole steps.
  if (poolProps->maxSize != 0 && poolProps->maxSize <= UINT64_MAX - kPoolStepBytes) {
    made.most_bytes = (poolProps->maxSize + kPoolStepBytes - 1) / kPoolStepBytes * kPoolStepBytes;
  }
  *pool = handle_of(add_pool(std::move(made)).get());
  return CUDA_SUCCESS;
}

CUresult cuMemPoolDestroy(CUmemoryPool pool) {
  return with_pool(pool, [](const std::shared_ptr<MemPool> &found) {
    if (found->is_default) return CUDA_ERROR_INVALID_VALUE;
    destroy_pool(found);
    return CUDA_SUCCESS;
  });
}

CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t minBytesToKeep) {
  return with_pool(pool, [=](const std::shared_ptr<MemPool> &found) {
    if (const CUresult error = may_act_unseen(); error != CUDA_SUCCESS) return error;
    trim(*found, minBytesToKeep);
    return CUDA_SUCCESS;
  });
}

CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attr, void *value) {
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (attr < CU_MEMPOOL_ATTR_RELEASE_THRESHOLD) note("%d=%d", static_cast<int>(attr), read<int>(value));
  return with_pool(pool, [=](const std::shared_ptr<MemPool> &found) {
    if (const CUresult error = may_act_unseen(); error != CUDA_SUCCESS) return error;
    switch (attr) {
      case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
        return set(found->follow_event_dependencies, value);
      case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
        return set(found->allow_opportunistic, value);
      case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
        return set(found->allow_internal_dependencies, value);
      case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
        found->release_threshold = read<cuuint64_t>(value);
        note("%d=%llu", static_cast<int>(attr), static_cast<unsigned long long>(found->release_threshold));
        return CUDA_SUCCESS;
      case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
        return reset(found->reserved_high, found->reserved, value);
      case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
        return reset(found->used_high, found->used, value);
      default:
        return CUDA_ERROR_INVALID_VALUE;
    }
  });
}

CUresult cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attr, void *value) {
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return with_pool(pool, [=](const std::shared_ptr<MemPool> &found) {
    if (const CUresult error = may_act_unseen(); error != CUDA_SUCCESS) return error;
    switch (attr) {
      case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
        return put<int>(value, found->follow_event_dependencies);
      case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
        return put<int>(value, found->allow_opportunistic);
      case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
        return put<int>(value, found->allow_internal_dependencies);
      case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
        return put<cuuint64_t>(value, found->release_threshold);
      case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
        return put<cuuint64_t>(value, found->reserved);
      case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
        return put<cuuint64_t>(value, found->reserved_high);
      case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
        return put<cuuint64_t>(value, found->used);
      case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
        return put<cuuint64_t>(value, found->used_high);
    }
    return CUDA_ERROR_INVALID_VALUE;
  });
}

// The pool's own device cannot lose access (programming guide, "Device Accessibility for Multi-GPU Support").
CUresult cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc *map, size_t count) {
  if (map == nullptr || count == 0) return CUDA_ERROR_INVALID_VALUE;
  return with_pool(pool, [=](const std::shared_ptr<MemPool> &found) {
    std::map<const Device *, CUmemAccess_flags> access = found->access;
    for (std::size_t i = 0; i < count; ++i) {
      Device *device = nullptr;
      const CUmemAccess_flags flags = map[i].flags;
      const bool known = flags == CU_MEM_ACCESS_FLAGS_PROT_NONE || flags == CU_MEM_ACCESS_FLAGS_PROT_READ ||
                         flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
      if (map[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE || !known) return CUDA_ERROR_INVALID_VALUE;
      // H200, driver 580.159: INVALID_DEVICE in both cases.
      if (device_of(map[i].location.id, &device) != CUDA_SUCCESS) return CUDA_ERROR_INVALID_DEVICE;
      if (device == found->device && flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE) return CUDA_ERROR_INVALID_DEVICE;
      access[device] = flags;
    }
    found->access = std::move(access);
    return CUDA_SUCCESS;
  });
}

CUresult cuMemPoolGetAccess(CUmemAccess_flags *flags, CUmemoryPool memPool, CUmemLocation *location) {
  Device *device = nullptr;
  if (flags == nullptr || location == nullptr || location->type != CU_MEM_LOCATION_TYPE_DEVICE ||
      device_of(location->id, &device) != CUDA_SUCCESS) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  return with_pool(memPool, [=](const std::shared_ptr<MemPool> &found) {
    const auto granted = found->access.find(device);
    const auto default_access =
        device == found->device ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE : CU_MEM_ACCESS_FLAGS_PROT_NONE;
    *flags = granted == found->access.end() ? default_access : granted->second;
    return CUDA_SUCCESS;
  });
}

}  // namespace simcuda
