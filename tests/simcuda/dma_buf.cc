#include "tests/simcuda/dma_buf.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <tuple>

#include "implemented.h"
#include "tests/simcuda/device_attributes.h"
#include "tests/simcuda/driver.h"
#include "tests/simcuda/memory_file.h"

namespace simcuda {
namespace {

struct DmaBuf {
  MemoryFile file;                                      // what the program has is a description with a lock on it
  std::vector<std::shared_ptr<PhysicalMemory>> mapped;  // of a range of mappings
  std::uint64_t block = 0;                              // or the number of a block
  std::shared_ptr<void> left;                           // of that block, after its free
};

std::vector<std::unique_ptr<DmaBuf>> &dma_bufs() {
  static auto *all = new std::vector<std::unique_ptr<DmaBuf>>;
  return *all;
}

auto kind_of(const CUmemAllocationProp &memory) {
  return std::tuple(memory.type, memory.requestedHandleTypes, memory.location.type, memory.location.id,
                    memory.allocFlags.compressionType, memory.allocFlags.gpuDirectRDMACapable, memory.allocFlags.usage);
}

// Of stream-ordered memory only pages of 2 MiB can be exported (tests/gpu/results).
CUresult find_block(const Allocation &block, std::uint64_t offset, std::uint64_t bytes, DmaBuf *made, Device **device) {
  if (block.managed != nullptr || bytes > block.requested - offset) return CUDA_ERROR_INVALID_VALUE;
  if (block.pool != nullptr && (offset % kVmmGranularity != 0 || bytes % kVmmGranularity != 0)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  made->block = block.id;
  *device = block.device;
  return CUDA_SUCCESS;
}

CUresult find_mappings(std::uint64_t address, std::uint64_t bytes, DmaBuf *made, Device **device) {
  for (std::uint64_t at = address; at - address < bytes;) {
    const auto found = mapped_at(at);
    if (!found || found->mapping == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const std::shared_ptr<PhysicalMemory> &memory = found->mapping->memory;
    if (memory->on_host()) return CUDA_ERROR_NOT_SUPPORTED;
    if (!made->mapped.empty() && kind_of(made->mapped[0]->properties) != kind_of(memory->properties)) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    made->mapped.push_back(memory);
    at = found->at + found->mapping->bytes;
  }
  return device_of(made->mapped[0]->properties.location.id, device);
}

CUresult find(std::uint64_t address, std::uint64_t bytes, DmaBuf *made, Device **device) {
  if (host_block_at(address) != driver().host_blocks.end()) return CUDA_ERROR_NOT_SUPPORTED;
  const auto block = allocation_at(address);
  if (block == driver().allocations.end()) return find_mappings(address, bytes, made, device);
  return find_block(block->second, address - block->first, bytes, made, device);
}

// Its size is the range's, which a seek to the end tells, as of a DMA-BUF.
int describe(MemoryFile &file, std::uint64_t bytes) {
  file.descriptor = ::memfd_create("simcuda-dma-buf", MFD_CLOEXEC);
  if (file.descriptor < 0 || ::ftruncate(file.descriptor, static_cast<off_t>(bytes)) != 0) return -1;
  return export_description(file, 0);
}

}  // namespace

bool keep_for_dma_bufs(std::uint64_t address, const Allocation &block) {
  forget_closed_dma_bufs();
  std::shared_ptr<void> left;
  for (const auto &open : dma_bufs()) {
    if (open->block != block.id) continue;
    if (left == nullptr) {
      Device *const device = block.device;
      left.reset(device, [=, bytes = block.bytes](void *) { give_memory(*device, address, bytes); });
    }
    open->left = left;
  }
  return left != nullptr;
}

void forget_closed_dma_bufs() {
  std::erase_if(dma_bufs(), [](const auto &open) { return !is_exported(open->file, 0); });
}

// No context is needed.
CUresult cuMemGetHandleForAddressRange(void *handle, CUdeviceptr dptr, size_t size, CUmemRangeHandleType handleType,
                                       unsigned long long flags) {
  const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  if (handle == nullptr || handleType != CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD) return CUDA_ERROR_INVALID_VALUE;
  if (flags != 0) {
    return flags == CU_MEM_RANGE_FLAG_DMA_BUF_MAPPING_TYPE_PCIE ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_INVALID_VALUE;
  }
  if (size == 0 || size % page != 0 || dptr % page != 0) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock(driver().mutex);
  forget_closed_dma_bufs();
  auto made = std::make_unique<DmaBuf>();
  Device *device = nullptr;
  if (const CUresult error = find(dptr, size, made.get(), &device); error != CUDA_SUCCESS) return error;
  if (attribute_of(*device, CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED) == 0) return CUDA_ERROR_NOT_SUPPORTED;
  const int descriptor = describe(made->file, size);
  if (descriptor < 0) return CUDA_ERROR_OPERATING_SYSTEM;
  dma_bufs().push_back(std::move(made));
  std::memcpy(handle, &descriptor, sizeof descriptor);
  return CUDA_SUCCESS;
}

}  // namespace simcuda
