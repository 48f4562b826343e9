// Device memory. An allocation costs its size rounded up to 512 bytes, exactly; addresses are multiples of 512 and
// unique across devices. Layer: driver.h. Threads: any.
#include <iterator>

#include "implemented.h"
#include "tests/simcuda/capture.h"
#include "tests/simcuda/dma_buf.h"
#include "tests/simcuda/driver.h"
#include "tests/simcuda/entry.h"
#include "tests/simcuda/graph_memory.h"
#include "tests/simcuda/mem_pool.h"

namespace simcuda {
namespace {

constexpr std::uint64_t kLegacy32Bytes = std::uint64_t{1} << 30;  // other devices need some below 4 GiB, too

}  // namespace

// An accepted free happens exactly once, even if the context is destroyed meanwhile.
CUresult begin_free(std::uint64_t address, std::map<std::uint64_t, Allocation>::iterator *block) {
  const auto found = driver().allocations.find(address);
  if (found == driver().allocations.end() || found->second.freeing) return CUDA_ERROR_INVALID_VALUE;
  if (found->second.import && found->second.pool == nullptr) return CUDA_ERROR_INVALID_VALUE;
  found->second.freeing = true;
  *block = found;
  return CUDA_SUCCESS;
}

void finish_free(std::uint64_t address, std::uint64_t id) {
  const auto allocation = driver().allocations.find(address);
  if (allocation != driver().allocations.end() && allocation->second.id == id) release_allocation(allocation);
}

std::map<std::uint64_t, Allocation>::iterator allocation_at(std::uint64_t address) {
  auto &all = driver().allocations;
  const auto after = all.upper_bound(address);
  if (after == all.begin()) return all.end();
  const auto candidate = std::prev(after);
  return address - candidate->first < candidate->second.requested ? candidate : all.end();
}

CUresult take_memory(Device &device, AddressSpace *space, std::uint64_t bytes, std::uint64_t *address) {
  forget_closed_dma_bufs();
  if (space == nullptr || !driver().machine->reserve(device.physical, bytes)) return CUDA_ERROR_OUT_OF_MEMORY;
  const auto taken = space->take(bytes);
  if (!taken) {
    driver().machine->release(device.physical, bytes);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  *address = *taken;
  return CUDA_SUCCESS;
}

void give_memory(Device &device, std::uint64_t address, std::uint64_t bytes) {
  for (AddressSpace *space : {device.space, device.managed, device.legacy32}) {
    if (space != nullptr && space->contains(address)) space->give(address, bytes);
  }
  driver().machine->release(device.physical, bytes);
}

CUresult allocate(Context &context, std::uint64_t bytes, std::uint64_t *address, bool legacy32) {
  Device &device = *context.device;
  if (legacy32 && device.legacy32 == nullptr) device.legacy32 = AddressSpace::create_legacy32(kLegacy32Bytes);
  AddressSpace *const space = legacy32 ? device.legacy32 : device.space;
  CUresult result = allocate_in(space, context, kUnitBytes, bytes, address);
  if (result == CUDA_ERROR_OUT_OF_MEMORY) {  // H100, H200, driver 580.159: what pools and graphs retain serves it
    if (device.graph_pool.reserved != 0) trim_graph_pool(device);
    trim_pools_of(device);
    result = allocate_in(space, context, kUnitBytes, bytes, address);
  }
  return result;
}

CUresult allocate_in(AddressSpace *space, Context &context, std::uint64_t granule, std::uint64_t bytes,
                     std::uint64_t *address) {
  Device &device = *context.device;
  if (bytes > device.bytes) return CUDA_ERROR_OUT_OF_MEMORY;
  const std::uint64_t cost = (bytes + granule - 1) / granule * granule;
  std::uint64_t taken = 0;
  if (const CUresult error = take_memory(device, space, cost, &taken); error != CUDA_SUCCESS) return error;
  driver().allocations.emplace(taken, Allocation{.requested = bytes,
                                                 .bytes = cost,
                                                 .device = &device,
                                                 .context = context.root,
                                                 .id = driver().next_id++,
                                                 .managed = nullptr});
  *address = taken;
  return CUDA_SUCCESS;
}

void release_allocation(std::map<std::uint64_t, Allocation>::iterator allocation) {
  const auto &[address, block] = *allocation;
  if (block.import) {
    block.device->space->unmap(address, block.bytes);
  } else if (block.graph_block != nullptr) {
    return free_graph_block_at_once(allocation);
  } else {
    if (block.published) block.device->space->publish(address, 0);
    if (!keep_for_dma_bufs(address, block)) give_memory(*block.device, address, block.bytes);
  }
  driver().allocations.erase(allocation);
}

CUresult cuMemAlloc_v2(CUdeviceptr *dptr, size_t bytesize) {
  note("%zu", bytesize);
  if (dptr != nullptr) *dptr = 0;  // H100, H200, driver 580.159: of a refused call, too
  Lock lock(driver().mutex);
  Context *context = nullptr;
  if (const CUresult error = current(lock, &context); error != CUDA_SUCCESS) return error;
  if (const CUresult error = may_act_unseen(); error != CUDA_SUCCESS) return error;
  if (dptr == nullptr || bytesize == 0) return CUDA_ERROR_INVALID_VALUE;
  std::uint64_t address = 0;
  if (const CUresult error = allocate(*context, bytesize, &address); error != CUDA_SUCCESS) return error;
  about(bytesize);
  *dptr = address;
  return CUDA_SUCCESS;
}

CUresult cuMemAllocPitch_v2(CUdeviceptr *dptr, size_t *pPitch, size_t WidthInBytes, size_t Height,
                            unsigned int ElementSizeBytes) {
  if (dptr != nullptr) *dptr = 0;  // as cuMemAlloc; not asked
  Lock lock(driver().mutex);
  Context *context = nullptr;
  if (const CUresult error = current(lock, &context); error != CUDA_SUCCESS) return error;
  if (const CUresult error = may_act_unseen(); error != CUDA_SUCCESS) return error;
  if (dptr == nullptr || pPitch == nullptr || WidthInBytes == 0 || Height == 0) return CUDA_ERROR_INVALID_VALUE;
  if (ElementSizeBytes != 4 && ElementSizeBytes != 8 && ElementSizeBytes != 16) return CUDA_ERROR_INVALID_VALUE;
  // H100, H200, driver 580.159: a pitch that overflows is INVALID_VALUE; a size that does, OUT_OF_MEMORY, and then, as
  // where memory lacks, the pitch is that of the refused allocation.
  std::size_t pitch = 0, bytes = 0;
  if (__builtin_add_overflow(WidthInBytes, kUnitBytes - 1, &pitch)) return CUDA_ERROR_INVALID_VALUE;
  pitch = pitch / kUnitBytes * kUnitBytes;
  *pPitch = pitch;
  if (__builtin_mul_overflow(pitch, Height, &bytes)) return CUDA_ERROR_OUT_OF_MEMORY;
  std::uint64_t address = 0;
  if (const CUresult error = allocate(*context, bytes, &address); error != CUDA_SUCCESS) return error;
  about(bytes);
  *dptr = address;
  return CUDA_SUCCESS;
}

// Waits for the work queued in the memory's context, as the real driver does in practice. A pool's block waits for
// nothing; a graph's block for the launch that allocates it.
CUresult cuMemFree_v2(CUdeviceptr dptr) {
  Lock lock(driver().mutex);
  Context *context = nullptr;
  const CUresult without = current(lock, &context);
  // H100, H200, driver 580.159: a null pointer needs no context.
  if (without != CUDA_SUCCESS && (dptr != 0 || without != CUDA_ERROR_INVALID_CONTEXT)) return without;
  if (const CUresult error = may_act_unseen(); error != CUDA_SUCCESS) return error;
  if (dptr == 0) return CUDA_SUCCESS;
  std::map<std::uint64_t, Allocation>::iterator block;
  if (const CUresult error = begin_free(dptr, &block); error != CUDA_SUCCESS) return error;
  if (block->second.pool != nullptr && !block->second.import) {
    free_at_once(lock, block);
    return context->health();
  }
  const std::uint64_t id = block->second.id;
  about(block->second.bytes);
  if (block->second.context != nullptr) {
    drain(lock, *block->second.context);
  } else {
    const Mark allocated = block->second.allocated;
    wait(lock, allocated);
  }
  finish_free(dptr, id);
  return context->health();
}

CUresult cuMemGetInfo_v2(size_t *free, size_t *total) {
  Lock lock(driver().mutex);
  Context *context = nullptr;
  if (const CUresult error = current(lock, &context); error != CUDA_SUCCESS) return error;
  forget_closed_dma_bufs();
  const Device &device = *context->device;
  if (free != nullptr) *free = device.bytes - driver().machine->used(device.physical);
  if (total != nullptr) *total = device.bytes;
  return CUDA_SUCCESS;
}

}  // namespace simcuda
