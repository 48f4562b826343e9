// Device memory. An allocation costs its size rounded up to 512 bytes, exactly; addresses are multiples of 512 and
// unique across devices. Layer: driver.h. Threads: any.
#include <iterator>

#include "implemented.h"
#include "tests/simcuda/capture.h"
#include "tests/simcuda/driver.h"
#include "tests/simcuda/entry.h"

namespace simcuda {
namespace {

constexpr std::uint64_t kNarrowBytes = std::uint64_t{1} << 30;  // the other devices want some below 4 GiB, too

// A free that has been accepted happens once, whatever happens to the context meanwhile.
void finish_free(std::uint64_t address, std::uint64_t id) {
  const auto allocation = driver().allocations.find(address);
  if (allocation != driver().allocations.end() && allocation->second.id == id) release_allocation(allocation);
}

CUresult begin_free(CUdeviceptr dptr, Allocation **allocation) {
  const auto found = driver().allocations.find(dptr);
  if (found == driver().allocations.end() || found->second.freeing) return CUDA_ERROR_INVALID_VALUE;
  found->second.freeing = true;
  *allocation = &found->second;
  return CUDA_SUCCESS;
}

}  // namespace

std::map<std::uint64_t, Allocation>::iterator allocation_at(std::uint64_t address) {
  auto &all = driver().allocations;
  const auto after = all.upper_bound(address);
  if (after == all.begin()) return all.end();
  const auto candidate = std::prev(after);
  return address - candidate->first < candidate->second.requested ? candidate : all.end();
}

CUresult take_memory(Device &device, AddressSpace *space, std::uint64_t bytes, std::uint64_t *address) {
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
  AddressSpace *const space = device.space->contains(address) ? device.space : device.narrow;
  space->give(address, bytes);
  driver().machine->release(device.physical, bytes);
}

CUresult allocate(Context &context, std::uint64_t bytes, std::uint64_t *address, bool narrow) {
  Device &device = *context.device;
  Context *const owner = context.root;
  if (bytes > device.bytes) return CUDA_ERROR_OUT_OF_MEMORY;
  if (narrow && device.narrow == nullptr) device.narrow = AddressSpace::create_narrow(kNarrowBytes);
  const std::uint64_t cost = (bytes + kGranuleBytes - 1) / kGranuleBytes * kGranuleBytes;
  AddressSpace *const space = narrow ? device.narrow : device.space;
  std::uint64_t taken = 0;
  if (const CUresult error = take_memory(device, space, cost, &taken); error != CUDA_SUCCESS) return error;
  driver().allocations.emplace(
      taken, Allocation{.requested = bytes, .bytes = cost, .context = owner, .id = driver().next_id++});
  *address = taken;
  return CUDA_SUCCESS;
}

void release_allocation(std::map<std::uint64_t, Allocation>::iterator allocation) {
  const auto &[address, block] = *allocation;
  give_memory(*block.context->device, address, block.bytes);
  driver().allocations.erase(allocation);
}

CUresult cuMemAlloc_v2(CUdeviceptr *dptr, size_t bytesize) {
  note("%zu", bytesize);
  Lock lock(driver().mutex);
  Context *context = nullptr;
  if (const CUresult error = current(lock, &context); error != CUDA_SUCCESS) return error;
  if (const CUresult error = may_act_unseen(); error != CUDA_SUCCESS) return error;
  if (dptr == nullptr || bytesize == 0) return CUDA_ERROR_INVALID_VALUE;
  std::uint64_t address = 0;
  if (const CUresult error = allocate(*context, bytesize, &address); error != CUDA_SUCCESS) return error;
  *dptr = address;
  return CUDA_SUCCESS;
}

CUresult cuMemAllocPitch_v2(CUdeviceptr *dptr, size_t *pPitch, size_t WidthInBytes, size_t Height,
                            unsigned int ElementSizeBytes) {
  Lock lock(driver().mutex);
  Context *context = nullptr;
  if (const CUresult error = current(lock, &context); error != CUDA_SUCCESS) return error;
  if (const CUresult error = may_act_unseen(); error != CUDA_SUCCESS) return error;
  if (dptr == nullptr || pPitch == nullptr || WidthInBytes == 0 || Height == 0) return CUDA_ERROR_INVALID_VALUE;
  if (ElementSizeBytes != 4 && ElementSizeBytes != 8 && ElementSizeBytes != 16) return CUDA_ERROR_INVALID_VALUE;
  std::size_t pitch = 0, bytes = 0;
  if (__builtin_add_overflow(WidthInBytes, kGranuleBytes - 1, &pitch)) return CUDA_ERROR_OUT_OF_MEMORY;
  pitch = pitch / kGranuleBytes * kGranuleBytes;
  if (__builtin_mul_overflow(pitch, Height, &bytes)) return CUDA_ERROR_OUT_OF_MEMORY;
  std::uint64_t address = 0;
  if (const CUresult error = allocate(*context, bytes, &address); error != CUDA_SUCCESS) return error;
  *dptr = address;
  *pPitch = pitch;
  return CUDA_SUCCESS;
}

// Waits for what is queued in the memory's context, as the real one does in practice.
CUresult cuMemFree_v2(CUdeviceptr dptr) {
  Lock lock(driver().mutex);
  Context *context = nullptr;
  if (const CUresult error = current(lock, &context); error != CUDA_SUCCESS) return error;
  if (const CUresult error = may_act_unseen(); error != CUDA_SUCCESS) return error;
  if (dptr == 0) return CUDA_SUCCESS;
  Allocation *allocation = nullptr;
  if (const CUresult error = begin_free(dptr, &allocation); error != CUDA_SUCCESS) return error;
  const std::uint64_t id = allocation->id;
  drain(lock, *allocation->context);
  finish_free(dptr, id);
  return CUDA_SUCCESS;
}

// A capture may only free what it allocated itself (cuda.h, cuGraphAddMemFreeNode): nothing here.
CUresult cuMemFreeAsync(CUdeviceptr dptr, CUstream hStream) {
  Lock lock(driver().mutex);
  std::shared_ptr<Stream> stream;
  if (const CUresult error = find_stream(lock, hStream, &stream); error != CUDA_SUCCESS) return error;
  if (const CUresult error = may_use(*stream); error != CUDA_SUCCESS) return error;
  if (stream->capture != nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (dptr == 0) return CUDA_SUCCESS;
  Allocation *allocation = nullptr;
  if (const CUresult error = begin_free(dptr, &allocation); error != CUDA_SUCCESS) return error;
  submit(lock, stream, Pace::kDelayed, [dptr, id = allocation->id] {
    const Lock in_stream_order(driver().mutex);
    finish_free(dptr, id);
  });
  return CUDA_SUCCESS;
}

CUresult cuMemGetInfo_v2(size_t *free, size_t *total) {
  Lock lock(driver().mutex);
  Context *context = nullptr;
  if (const CUresult error = current(lock, &context); error != CUDA_SUCCESS) return error;
  const Device &device = *context->device;
  if (free != nullptr) *free = device.bytes - driver().machine->used(device.physical);
  if (total != nullptr) *total = device.bytes;
  return CUDA_SUCCESS;
}

}  // namespace simcuda
