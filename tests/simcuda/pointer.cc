// What is known about a pointer. Layer: driver.h. Threads: any.
#include <cstring>

#include "implemented.h"
#include "tests/simcuda/mem_pool.h"

namespace simcuda {
namespace {

// A live block of device or pinned host memory, or nothing (`known` false).
struct Block {
  bool known = false;
  bool device = false;
  std::uint64_t base = 0;
  std::uint64_t bytes = 0;
  std::uint64_t id = 0;
  const Device *owner = nullptr;
  Context *context = nullptr;  // null where no context owns it: a pool's
  bool sync_memops = false;
  const MemPool *pool = nullptr;
  bool shareable = false;  // with other processes
};

Block block_at(CUdeviceptr ptr) {
  if (const auto found = allocation_at(ptr); found != driver().allocations.end()) {
    const Allocation &block = found->second;
    return {true,         true,          found->first,      block.requested,  block.id,
            block.device, block.context, block.sync_memops, block.pool.get(), !block.import && block.pool == nullptr};
  }
  if (const auto found = host_block_at(ptr); found != driver().host_blocks.end()) {
    const HostBlock &block = found->second;
    return {true, false, found->first, block.bytes, block.id, block.context->device, block.context};
  }
  return {};
}

template <class Value>
CUresult put(void *data, Value value) {
  std::memcpy(data, &value, sizeof value);
  return CUDA_SUCCESS;
}

// Writes exactly as many bytes as cuda.h gives the attribute. For an unknown pointer: the nulls that
// cuPointerGetAttributes promises.
CUresult tell(void *data, CUpointer_attribute attribute, CUdeviceptr ptr, const Block &block) {
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
      put(data, handle_of(block.context));
      return block.known && block.context == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      if (!block.known) return put<unsigned>(data, 0);
      return put<unsigned>(data, block.device ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST);
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
      return put<CUdeviceptr>(data, block.known ? ptr : 0);
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
      put<std::uint64_t>(data, block.known && !block.device ? ptr : 0);
      return block.device ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
      return put<unsigned>(data, block.sync_memops);
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
    case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
      return put<unsigned long long>(data, block.id);
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      return put<int>(data, block.known ? ordinal_of(*block.owner) : CU_DEVICE_INVALID);
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
      return put<CUdeviceptr>(data, block.base);
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
      return put<std::size_t>(data, block.bytes);
    case CU_POINTER_ATTRIBUTE_MAPPED:
      return put<int>(data, block.known);
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
      return put<int>(data, block.known ? 3 : 0);  // CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
      return put<std::uint64_t>(data, block.pool == nullptr ? 0 : static_cast<std::uint64_t>(block.pool->handle_types));
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
      return put(data, handle_of(block.pool));
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
      return put<bool>(data, block.shareable);
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
      return put<int>(data, 0);
    case CU_POINTER_ATTRIBUTE_P2P_TOKENS:
      return CUDA_ERROR_NOT_SUPPORTED;
  }
  return CUDA_ERROR_INVALID_VALUE;
}

}  // namespace

CUresult cuMemGetAddressRange_v2(CUdeviceptr *pbase, size_t *psize, CUdeviceptr dptr) {
  Lock lock(driver().mutex);
  Context *context = nullptr;
  if (const CUresult error = current(lock, &context); error != CUDA_SUCCESS) return error;
  const auto found = allocation_at(dptr);
  if (found == driver().allocations.end()) return CUDA_ERROR_NOT_FOUND;
  if (pbase != nullptr) *pbase = found->first;
  if (psize != nullptr) *psize = found->second.requested;
  return CUDA_SUCCESS;
}

CUresult cuPointerGetAttribute(void *data, CUpointer_attribute attribute, CUdeviceptr ptr) {
  if (data == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Lock lock(driver().mutex);
  Context *context = nullptr;
  if (const CUresult error = current(lock, &context); error != CUDA_SUCCESS) return error;
  const Block block = block_at(ptr);
  return block.known ? tell(data, attribute, ptr, block) : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuPointerGetAttributes(unsigned int numAttributes, CUpointer_attribute *attributes, void **data,
                                CUdeviceptr ptr) {
  if (numAttributes == 0 || attributes == nullptr || data == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Lock lock(driver().mutex);
  Context *context = nullptr;
  if (const CUresult error = current(lock, &context); error != CUDA_SUCCESS) return error;
  const Block block = block_at(ptr);
  for (unsigned i = 0; i < numAttributes; ++i) {
    if (data[i] == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const CUresult error = tell(data[i], attributes[i], ptr, block);
    // Only here "it has no host address" and "it is no context's" are answers and not errors.
    const bool answer =
        attributes[i] == CU_POINTER_ATTRIBUTE_HOST_POINTER || attributes[i] == CU_POINTER_ATTRIBUTE_CONTEXT;
    if (error != CUDA_SUCCESS && !answer) return error;
  }
  return CUDA_SUCCESS;
}

CUresult cuPointerSetAttribute(const void *value, CUpointer_attribute attribute, CUdeviceptr ptr) {
  if (value == nullptr || attribute != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS) return CUDA_ERROR_INVALID_VALUE;
  Lock lock(driver().mutex);
  Context *context = nullptr;
  if (const CUresult error = current(lock, &context); error != CUDA_SUCCESS) return error;
  const auto found = allocation_at(ptr);
  if (found == driver().allocations.end()) return CUDA_ERROR_INVALID_VALUE;
  unsigned set = 0;
  std::memcpy(&set, value, sizeof set);
  found->second.sync_memops = set != 0;
  return CUDA_SUCCESS;
}

}  // namespace simcuda
