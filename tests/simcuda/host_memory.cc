// Pinned host memory: allocated here, or registered by the program. A host address is its own device address.
// Layer: driver.h. Threads: any.
#include <sys/mman.h>

#include <iterator>

#include "implemented.h"
#include "tests/simcuda/bytes.h"
#include "tests/simcuda/capture.h"
#include "tests/simcuda/driver.h"
#include "tests/simcuda/entry.h"

namespace simcuda {
namespace {

constexpr unsigned kAllocFlags = CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED;
constexpr unsigned kRegisterFlags = CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP |
                                    CU_MEMHOSTREGISTER_IOMEMORY | CU_MEMHOSTREGISTER_READ_ONLY;

std::uintptr_t number_of(const void *pointer) {
  return reinterpret_cast<std::uintptr_t>(pointer);
}

void release_host_block(std::map<std::uintptr_t, HostBlock>::iterator block) {
  const HostBlock &gone = block->second;
  about(gone.bytes);
  if (gone.mapped != 0) ::munmap(reinterpret_cast<void *>(block->first), gone.mapped);
  if (gone.device != nullptr) driver().machine->release(gone.device->physical, gone.mapped);
  driver().host_blocks.erase(block);
}

// Waits for all work of the block's context. Meanwhile the block may go with its context.
CUresult release_when_idle(Lock &lock, std::map<std::uintptr_t, HostBlock>::iterator block) {
  const std::uintptr_t address = block->first;
  const std::uint64_t id = block->second.id;
  drain(lock, *block->second.context);
  block = driver().host_blocks.find(address);
  if (block != driver().host_blocks.end() && block->second.id == id) release_host_block(block);
  return CUDA_SUCCESS;
}

bool overlaps(std::uintptr_t first, std::size_t bytes) {
  auto &all = driver().host_blocks;
  const auto next = all.lower_bound(first);
  if (next != all.end() && next->first < first + bytes) return true;
  return next != all.begin() && std::prev(next)->first + std::prev(next)->second.bytes > first;
}

}  // namespace

std::map<std::uintptr_t, HostBlock>::iterator host_block_at(std::uint64_t address) {
  auto &all = driver().host_blocks;
  const auto after = all.upper_bound(address);
  if (after == all.begin()) return all.end();
  const auto candidate = std::prev(after);
  return address - candidate->first < candidate->second.bytes ? candidate : all.end();
}

void release_memory_of(Context &context) {
  release_arrays_of(context);
  auto &device_blocks = driver().allocations;
  for (auto block = device_blocks.begin(); block != device_blocks.end();) {
    const auto next = std::next(block);
    if (block->second.context == &context) release_allocation(block);
    block = next;
  }
  auto &host_blocks = driver().host_blocks;
  for (auto block = host_blocks.begin(); block != host_blocks.end();) {
    const auto next = std::next(block);
    if (block->second.context == &context) release_host_block(block);
    block = next;
  }
}

CUresult cuMemAllocHost_v2(void **pp, size_t bytesize) {
  return simcuda::cuMemHostAlloc(pp, bytesize, 0);
}

CUresult cuMemHostAlloc(void **pp, size_t bytesize, unsigned int Flags) {
  Lock lock(driver().mutex);
  Context *context = nullptr;
  if (const CUresult error = current(lock, &context); error != CUDA_SUCCESS) return error;
  if (const CUresult error = may_act_unseen(); error != CUDA_SUCCESS) return error;
  if (pp == nullptr || bytesize == 0 || (Flags & ~kAllocFlags) != 0) return CUDA_ERROR_INVALID_VALUE;
  if (bytesize > SIZE_MAX - kPage) return CUDA_ERROR_OUT_OF_MEMORY;
  const std::size_t mapped = (bytesize + kPage - 1) / kPage * kPage;
  Device *const device = driver().settings->integrated ? context->device : nullptr;
  if (device != nullptr && !driver().machine->reserve(device->physical, mapped)) return CUDA_ERROR_OUT_OF_MEMORY;
  void *memory = ::mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    if (device != nullptr) driver().machine->release(device->physical, mapped);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  driver().host_blocks[number_of(memory)] = {bytesize, mapped, Flags, context->root, driver().next_id++, device};
  about(mapped);
  *pp = memory;
  return CUDA_SUCCESS;
}

CUresult cuMemFreeHost(void *p) {
  Lock lock(driver().mutex);
  Context *context = nullptr;
  if (const CUresult error = current(lock, &context); error != CUDA_SUCCESS) return error;
  if (const CUresult error = may_act_unseen(); error != CUDA_SUCCESS) return error;
  const auto block = driver().host_blocks.find(number_of(p));
  if (block == driver().host_blocks.end() || block->second.mapped == 0) return CUDA_ERROR_INVALID_VALUE;
  return release_when_idle(lock, block);
}

CUresult cuMemHostRegister(void *p, size_t bytesize, unsigned int Flags) {
  return simcuda::cuMemHostRegister_v2(p, bytesize, Flags);
}

CUresult cuMemHostRegister_v2(void *p, size_t bytesize, unsigned int Flags) {
  Lock lock(driver().mutex);
  Context *context = nullptr;
  if (const CUresult error = current(lock, &context); error != CUDA_SUCCESS) return error;
  if (const CUresult error = may_act_unseen(); error != CUDA_SUCCESS) return error;
  if (p == nullptr || bytesize == 0 || (Flags & ~kRegisterFlags) != 0 || number_of(p) + bytesize < number_of(p)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (overlaps(number_of(p), bytesize)) return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
  driver().host_blocks[number_of(p)] = {bytesize, 0, Flags, context->root, driver().next_id++, nullptr};
  about(bytesize);
  return CUDA_SUCCESS;
}

CUresult cuMemHostUnregister(void *p) {
  Lock lock(driver().mutex);
  Context *context = nullptr;
  if (const CUresult error = current(lock, &context); error != CUDA_SUCCESS) return error;
  if (const CUresult error = may_act_unseen(); error != CUDA_SUCCESS) return error;
  if (p == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const auto block = driver().host_blocks.find(number_of(p));
  if (block == driver().host_blocks.end() || block->second.mapped != 0) return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
  return release_when_idle(lock, block);
}

CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *pdptr, void *p, unsigned int Flags) {
  Lock lock(driver().mutex);
  Context *context = nullptr;
  if (const CUresult error = current(lock, &context); error != CUDA_SUCCESS) return error;
  if (pdptr == nullptr || Flags != 0) return CUDA_ERROR_INVALID_VALUE;
  if (host_block_at(number_of(p)) == driver().host_blocks.end()) return CUDA_ERROR_INVALID_VALUE;
  *pdptr = number_of(p);
  return CUDA_SUCCESS;
}

CUresult cuMemHostGetFlags(unsigned int *pFlags, void *p) {
  Lock lock(driver().mutex);
  Context *context = nullptr;
  if (const CUresult error = current(lock, &context); error != CUDA_SUCCESS) return error;
  const auto block = host_block_at(number_of(p));
  if (pFlags == nullptr || block == driver().host_blocks.end() || block->second.mapped == 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  *pFlags = block->second.flags | CU_MEMHOSTALLOC_DEVICEMAP;  // under unified addressing all pinned memory is mapped
  return CUDA_SUCCESS;
}

}  // namespace simcuda
