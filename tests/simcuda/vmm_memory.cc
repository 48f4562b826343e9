// Physical memory and its handles. A handle's memory is charged to the device of its location, regardless of the
// current context; none is needed. Layer: vmm.h. Threads: any.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "implemented.h"
#include "tests/simcuda/dma_buf.h"
#include "tests/simcuda/driver.h"
#include "tests/simcuda/entry.h"
#include "tests/simcuda/vmm.h"

namespace simcuda {
namespace {

bool place(PhysicalMemory &memory) {
  memory.file = own_memory_file();
  memory.labelled = memory.properties.requestedHandleTypes != CU_MEM_HANDLE_TYPE_NONE;
  const std::uint64_t before = memory.labelled ? kLabelBytes : 0;
  if (memory.file == nullptr || !take_place(before + memory.bytes, &memory.label)) return false;
  memory.offset = memory.label + before;
  return true;
}

bool is_host(CUmemLocationType type) {
  return type == CU_MEM_LOCATION_TYPE_HOST || type == CU_MEM_LOCATION_TYPE_HOST_NUMA ||
         type == CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT;
}

}  // namespace

PhysicalMemory::~PhysicalMemory() {
  if (labelled) {
    leave_exportable(*this);
  } else if (file != nullptr) {
    ::fallocate(file->descriptor, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset),
                static_cast<off_t>(bytes));
  }
  if (charged != nullptr) driver().machine->release(charged->physical, bytes);
}

CUresult check_properties(const CUmemAllocationProp *properties) {
  if (properties == nullptr || properties->type != CU_MEM_ALLOCATION_TYPE_PINNED) return CUDA_ERROR_INVALID_VALUE;
  if (properties->win32HandleMetaData != nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUmemLocation &location = properties->location;
  const unsigned types = properties->requestedHandleTypes;
  constexpr unsigned kKnown = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR | CU_MEM_HANDLE_TYPE_WIN32 |
                              CU_MEM_HANDLE_TYPE_WIN32_KMT | CU_MEM_HANDLE_TYPE_FABRIC;
  if ((types & ~kKnown) != 0) return CUDA_ERROR_INVALID_VALUE;
  if (location.type == CU_MEM_LOCATION_TYPE_DEVICE) {
    Device *device = nullptr;
    if (const CUresult error = device_of(location.id, &device); error != CUDA_SUCCESS) return error;
  } else if (!is_host(location.type) || location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT) {
    return CUDA_ERROR_INVALID_VALUE;
  } else if (location.type == CU_MEM_LOCATION_TYPE_HOST && types != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  } else if (location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA && location.id != 0) {
    return CUDA_ERROR_INVALID_VALUE;  // a machine with one node
  }
  return (types & ~unsigned{CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR}) != 0 ? CUDA_ERROR_NOT_SUPPORTED : CUDA_SUCCESS;
}

CUresult charge(PhysicalMemory &memory) {
  if (memory.on_host()) return CUDA_SUCCESS;
  forget_closed_dma_bufs();
  Device *device = nullptr;
  if (const CUresult error = device_of(memory.properties.location.id, &device); error != CUDA_SUCCESS) return error;
  if (!driver().machine->reserve(device->physical, memory.bytes)) return CUDA_ERROR_OUT_OF_MEMORY;
  memory.charged = device;
  return CUDA_SUCCESS;
}

MemoryHandle *memory_handle(CUmemGenericAllocationHandle handle) {
  const auto found = driver().virtual_memory.handles.find(handle);
  const bool good = found != driver().virtual_memory.handles.end() && found->second.references != 0;
  return good ? &found->second : nullptr;
}

CUmemGenericAllocationHandle add_handle(std::shared_ptr<PhysicalMemory> memory) {
  const CUmemGenericAllocationHandle handle = driver().next_id++;
  driver().virtual_memory.handles[handle].memory = std::move(memory);
  return handle;
}

void forget_unused(CUmemGenericAllocationHandle handle) {
  const auto found = driver().virtual_memory.handles.find(handle);
  if (found == driver().virtual_memory.handles.end()) return;
  if (found->second.references == 0 && found->second.mappings == 0) driver().virtual_memory.handles.erase(found);
}

MemoryHold::MemoryHold(CUmemGenericAllocationHandle handle) : handle_(handle) {
  ++driver().virtual_memory.handles.at(handle).mappings;
}

MemoryHold::~MemoryHold() {
  --driver().virtual_memory.handles.at(handle_).mappings;
  forget_unused(handle_);
}

CUresult cuMemGetAllocationGranularity(size_t *granularity, const CUmemAllocationProp *prop,
                                       CUmemAllocationGranularity_flags option) {
  if (granularity == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (option != CU_MEM_ALLOC_GRANULARITY_MINIMUM && option != CU_MEM_ALLOC_GRANULARITY_RECOMMENDED) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (const CUresult error = check_properties(prop); error != CUDA_SUCCESS) return error;
  *granularity = kVmmGranularity;
  return CUDA_SUCCESS;
}

CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t size, const CUmemAllocationProp *prop,
                     unsigned long long flags) {
  note("%zu", size);
  if (handle == nullptr || flags != 0 || size == 0 || size % kVmmGranularity != 0) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult error = check_properties(prop); error != CUDA_SUCCESS) return error;
  const Lock lock(driver().mutex);
  auto memory = std::make_shared<PhysicalMemory>();
  memory->properties = *prop;
  memory->bytes = size;
  memory->id = driver().next_id++;
  if (const CUresult error = charge(*memory); error != CUDA_SUCCESS) return error;
  if (!place(*memory)) return CUDA_ERROR_OUT_OF_MEMORY;
  *handle = add_handle(std::move(memory));
  about(size);
  return CUDA_SUCCESS;
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
  const Lock lock(driver().mutex);
  MemoryHandle *const known = memory_handle(handle);
  if (known == nullptr) return CUDA_ERROR_INVALID_VALUE;
  --known->references;
  if (known->references == 0 && known->mappings == 0) about(known->memory->bytes);
  forget_unused(handle);
  return CUDA_SUCCESS;
}

CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *addr) {
  const Lock lock(driver().mutex);
  const auto found = mapped_at(reinterpret_cast<std::uintptr_t>(addr));
  if (handle == nullptr || !found || found->mapping == nullptr) return CUDA_ERROR_INVALID_VALUE;
  ++driver().virtual_memory.handles.at(found->mapping->handle).references;
  *handle = found->mapping->handle;
  return CUDA_SUCCESS;
}

CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp *prop, CUmemGenericAllocationHandle handle) {
  const Lock lock(driver().mutex);
  const MemoryHandle *const known = memory_handle(handle);
  if (prop == nullptr || known == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *prop = known->memory->properties;
  return CUDA_SUCCESS;
}

}  // namespace simcuda
