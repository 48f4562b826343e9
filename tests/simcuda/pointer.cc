// Pointer attributes and address ranges. Layer: driver.h. Threads: any.
#include <cstring>

#include "implemented.h"
#include "tests/simcuda/bytes.h"
#include "tests/simcuda/graph_memory.h"
#include "tests/simcuda/mem_pool.h"

namespace simcuda {
namespace {

struct Range {
  std::uint64_t base = 0;
  std::uint64_t bytes = 0;
};

// A live block of device or pinned host memory, or none (`known` false).
struct Block {
  bool known = false;
  bool device = false;
  bool host = false;  // the program can access it
  bool managed = false;
  Range range;  // the block's range; for mapped memory the whole reservation around it
  Range mapping;
  std::uint64_t id = 0;
  std::uint64_t physical_id = 0;
  Context *context = nullptr;  // null: blocks of pools and graphs and mapped memory belong to no context
  int ordinal = CU_DEVICE_INVALID;
  int access = CU_MEM_ACCESS_FLAGS_PROT_NONE;  // of the current context's device
  bool rdma = false;
  unsigned handle_types = CU_MEM_HANDLE_TYPE_NONE;
  bool sync_memops = false;
  const MemPool *pool = nullptr;
  bool ordered = false;    // stream-ordered memory, or a graph's
  bool shareable = false;  // exportable to other processes
};

Block block_of(Range range, std::uint64_t id, Context *context, int ordinal, bool device) {
  Block block;
  block.known = true;
  block.device = device;
  block.host = !device;
  block.range = block.mapping = range;
  block.id = block.physical_id = id;
  block.context = context;
  block.ordinal = ordinal;
  block.access = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  return block;
}

// H100, H200, driver 580.159: an address that is only reserved has no attributes.
Block block_of(const Mapped &found, const Context &current) {
  Block block;
  if (found.mapping == nullptr) return block;
  const Mapping &mapping = *found.mapping;
  block.known = true;
  block.range = {found.reserved_at, found.reservation->bytes};
  block.device = !mapping.memory->on_host();
  block.host = mapping.host != CU_MEM_ACCESS_FLAGS_PROT_NONE;
  block.mapping = {found.at, mapping.bytes};
  block.id = mapping.id;
  block.physical_id = mapping.memory->id;
  block.ordinal = block.device ? mapping.memory->properties.location.id : CU_DEVICE_CPU;
  block.access = mapping.devices[static_cast<std::size_t>(ordinal_of(*current.device))];
  block.handle_types = mapping.memory->properties.requestedHandleTypes;
  block.rdma = mapping.memory->properties.allocFlags.gpuDirectRDMACapable != 0;
  return block;
}

int access_to(const MemPool &pool, const Device &device) {
  if (pool.device == &device) return CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  const auto found = pool.access.find(&device);
  return found == pool.access.end() ? CU_MEM_ACCESS_FLAGS_PROT_NONE : found->second;
}

int access_to(const GraphBlock &graphs, const Device &device) {
  if (graphs.device == &device) return CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  for (const CUmemAccessDesc &access : graphs.access) {
    if (access.location.id == ordinal_of(device)) return access.flags;
  }
  return CU_MEM_ACCESS_FLAGS_PROT_NONE;
}

Block block_at(CUdeviceptr ptr, const Context &current) {
  if (const auto found = allocation_at(ptr); found != driver().allocations.end()) {
    const Allocation &allocation = found->second;
    Block block = block_of({found->first, allocation.requested}, allocation.id, allocation.context,
                           ordinal_of(*allocation.device), true);
    block.sync_memops = allocation.sync_memops;
    block.managed = block.host = allocation.managed != nullptr;
    block.pool = allocation.pool.get();
    block.ordered = block.pool != nullptr || allocation.graph_block != nullptr;
    if (block.pool != nullptr) {
      block.handle_types = static_cast<unsigned>(block.pool->handle_types);
      block.access = access_to(*block.pool, *current.device);
    } else if (block.ordered) {
      block.access = access_to(*allocation.graph_block, *current.device);
    }
    block.shareable = !allocation.import && !block.ordered && !block.managed;
    return block;
  }
  if (const auto found = host_block_at(ptr); found != driver().host_blocks.end()) {
    Context *const context = found->second.context;
    return block_of({found->first, found->second.bytes}, found->second.id, context, ordinal_of(*context->device),
                    false);
  }
  if (const auto found = mapped_at(ptr)) return block_of(*found, current);
  return {};
}

// Writes exactly as many bytes as cuda.h gives the attribute. For an unknown pointer: the nulls that
// cuPointerGetAttributes guarantees.
CUresult report(void *data, CUpointer_attribute attribute, CUdeviceptr ptr, const Block &block) {
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
      put(data, handle_of(block.context));
      return block.ordered ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      if (!block.known) return put<unsigned>(data, 0);
      return put<unsigned>(data, block.device ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST);
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
      return put<CUdeviceptr>(data, block.known ? ptr : 0);
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
      put<std::uint64_t>(data, block.host ? ptr : 0);
      return block.known && !block.host ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
      return put<unsigned>(data, block.sync_memops);
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
      return put<unsigned long long>(data, block.id);
    case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
      return put<unsigned long long>(data, block.physical_id);
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      return put<int>(data, block.ordinal);
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
      return put<CUdeviceptr>(data, block.range.base);
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
      return put<std::size_t>(data, block.range.bytes);
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
      return put<CUdeviceptr>(data, block.mapping.base);
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
      return put<std::size_t>(data, block.mapping.bytes);
    case CU_POINTER_ATTRIBUTE_MAPPED:
      return put<int>(data, block.known);
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
      return put<int>(data, block.access);  // the same values as cuMemGetAccess
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
      return put<std::uint64_t>(data, block.handle_types);
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
      return put(data, handle_of(block.pool));
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
      return put<int>(data, block.managed);
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
      return put<bool>(data, block.shareable);
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
      return put<int>(data, block.rdma);
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
  const Block block = block_at(dptr, *context);
  if (!block.known || host_block_at(dptr) != driver().host_blocks.end()) return CUDA_ERROR_NOT_FOUND;
  if (pbase != nullptr) *pbase = block.mapping.base;
  if (psize != nullptr) *psize = block.mapping.bytes;
  return CUDA_SUCCESS;
}

CUresult cuPointerGetAttribute(void *data, CUpointer_attribute attribute, CUdeviceptr ptr) {
  if (data == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Lock lock(driver().mutex);
  Context *context = nullptr;
  if (const CUresult error = current(lock, &context); error != CUDA_SUCCESS) return error;
  const Block block = block_at(ptr, *context);
  return block.known ? report(data, attribute, ptr, block) : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuPointerGetAttributes(unsigned int numAttributes, CUpointer_attribute *attributes, void **data,
                                CUdeviceptr ptr) {
  if (numAttributes == 0 || attributes == nullptr || data == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Lock lock(driver().mutex);
  Context *context = nullptr;
  if (const CUresult error = current(lock, &context); error != CUDA_SUCCESS) return error;
  const Block block = block_at(ptr, *context);
  for (unsigned i = 0; i < numAttributes; ++i) {
    if (data[i] == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const CUresult error = report(data[i], attributes[i], ptr, block);
    // Only in this call are "no host address" and "no context" answers instead of errors.
    const bool answer =
        attributes[i] == CU_POINTER_ATTRIBUTE_HOST_POINTER || attributes[i] == CU_POINTER_ATTRIBUTE_CONTEXT;
    if (error != CUDA_SUCCESS && !answer) return error;
  }
  return CUDA_SUCCESS;
}

// Of memory that is mapped the driver does not keep it (tests/gpu/results).
CUresult cuPointerSetAttribute(const void *value, CUpointer_attribute attribute, CUdeviceptr ptr) {
  if (value == nullptr || attribute != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS) return CUDA_ERROR_INVALID_VALUE;
  Lock lock(driver().mutex);
  Context *context = nullptr;
  if (const CUresult error = current(lock, &context); error != CUDA_SUCCESS) return error;
  unsigned set = 0;
  std::memcpy(&set, value, sizeof set);
  if (const auto found = allocation_at(ptr); found != driver().allocations.end()) {
    found->second.sync_memops = set != 0;
    return CUDA_SUCCESS;
  }
  const auto mapped = mapped_at(ptr);
  return mapped && mapped->mapping != nullptr ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_INVALID_VALUE;
}

}  // namespace simcuda
