// Managed memory: the program may use it at once, at the device's address. Pages do not migrate. Copies treat it as
// host memory, and so do fills: by the manuals they wait for "a Unified Memory region".
// Layer: managed.h. Threads: any.
#include "tests/simcuda/managed.h"

#include "implemented.h"
#include "tests/simcuda/capture.h"
#include "tests/simcuda/driver.h"
#include "tests/simcuda/entry.h"

namespace simcuda {
namespace {

// No graph node represents it: a capturing stream refuses.
CUresult queue_nothing(Lock &lock, const std::shared_ptr<Stream> &stream) {
  if (const CUresult error = may_use(*stream); error != CUDA_SUCCESS) return error;
  if (stream->capture != nullptr) return refuse(*stream);
  submit(lock, stream, Pace::kDelayed, [] {});
  return CUDA_SUCCESS;
}

CUresult prefetch(CUdeviceptr address, std::size_t bytes, CUmemLocation location, CUstream handle) {
  Lock lock(driver().mutex);
  std::shared_ptr<Stream> stream;
  if (const CUresult error = find_stream(lock, handle, &stream); error != CUDA_SUCCESS) return error;
  if (const CUresult error = resolve(&location); error != CUDA_SUCCESS) return error;
  const ManagedRange range = managed_range(address, bytes);
  if (range.advised == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult error = queue_nothing(lock, stream); error != CUDA_SUCCESS) return error;
  advise(range, [&](Advice &advice) { advice.prefetched = location; });
  return CUDA_SUCCESS;
}

}  // namespace

ManagedRange managed_range(std::uint64_t address, std::uint64_t bytes) {
  const auto found = allocation_at(address);
  if (found == driver().allocations.end() || found->second.managed == nullptr || bytes == 0) return {};
  if (bytes > found->second.requested - (address - found->first)) return {};
  return {found->second.managed.get(), address / kManagedPage * kManagedPage,
          (address + bytes + kManagedPage - 1) / kManagedPage * kManagedPage};
}

CUresult resolve(CUmemLocation *location) {
  switch (location->type) {
    case CU_MEM_LOCATION_TYPE_DEVICE: {
      Device *device = nullptr;
      return device_of(location->id, &device);
    }
    case CU_MEM_LOCATION_TYPE_HOST:
      location->id = 0;
      return CUDA_SUCCESS;
    case CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT:
      *location = {CU_MEM_LOCATION_TYPE_HOST_NUMA, 0};
      return CUDA_SUCCESS;
    case CU_MEM_LOCATION_TYPE_HOST_NUMA:
      return location->id == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;  // a machine with one node
    case CU_MEM_LOCATION_TYPE_INVALID:
    case CU_MEM_LOCATION_TYPE_MAX:
      break;
  }
  return CUDA_ERROR_INVALID_VALUE;
}

CUmemLocation location_of(CUdevice device) {
  if (device == CU_DEVICE_CPU) return {CU_MEM_LOCATION_TYPE_HOST, 0};
  return {CU_MEM_LOCATION_TYPE_DEVICE, device};
}

CUresult cuMemAllocManaged(CUdeviceptr *dptr, size_t bytesize, unsigned int flags) {
  note("%zu", bytesize);
  if (dptr != nullptr) *dptr = 0;  // H100, H200, driver 580.159: of a refused call, too
  Lock lock(driver().mutex);
  Context *context = nullptr;
  if (const CUresult error = current(lock, &context); error != CUDA_SUCCESS) return error;
  if (const CUresult error = may_act_unseen(); error != CUDA_SUCCESS) return error;
  if (dptr == nullptr || bytesize == 0) return CUDA_ERROR_INVALID_VALUE;
  if (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST) return CUDA_ERROR_INVALID_VALUE;
  Device &device = *context->device;
  if (device.managed == nullptr) device.managed = AddressSpace::create(device.bytes, false, AddressSpace::Host::kLetIn);
  if (device.managed == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  std::uint64_t address = 0;
  const CUresult error = allocate_in(device.managed, *context, kManagedPage, bytesize, &address);
  if (error != CUDA_SUCCESS) return error;
  auto advised = std::make_unique<Advised>();
  advised->from[address] = {};
  Allocation &allocation = driver().allocations.at(address);
  allocation.managed = std::move(advised);
  allocation.sync_memops = true;  // as a device answers (tests/gpu/results)
  *dptr = address;
  return CUDA_SUCCESS;
}

// Stream attachment matters only on devices that cannot share the memory with the host; only the parameters are
// checked.
CUresult cuStreamAttachMemAsync(CUstream hStream, CUdeviceptr dptr, size_t length, unsigned int flags) {
  Lock lock(driver().mutex);
  std::shared_ptr<Stream> stream;
  if (const CUresult error = find_stream(lock, hStream, &stream); error != CUDA_SUCCESS) return error;
  if (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST && flags != CU_MEM_ATTACH_SINGLE) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const bool of_all = stream->kind == Stream::Kind::kLegacy || stream->kind == Stream::Kind::kPerThread;
  if (flags == CU_MEM_ATTACH_SINGLE && of_all) return CUDA_ERROR_INVALID_VALUE;
  const auto found = driver().allocations.find(dptr);
  if (found == driver().allocations.end() || found->second.managed == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (length != 0 && length != found->second.requested) return CUDA_ERROR_INVALID_VALUE;
  return queue_nothing(lock, stream);
}

CUresult cuMemPrefetchAsync(CUdeviceptr devPtr, size_t count, CUdevice dstDevice, CUstream hStream) {
  return prefetch(devPtr, count, location_of(dstDevice), hStream);
}

CUresult cuMemPrefetchAsync_v2(CUdeviceptr devPtr, size_t count, CUmemLocation location, unsigned int flags,
                               CUstream hStream) {
  return flags != 0 ? CUDA_ERROR_INVALID_VALUE : prefetch(devPtr, count, location, hStream);
}

}  // namespace simcuda
