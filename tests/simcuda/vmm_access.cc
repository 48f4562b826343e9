// Access rights of mappings. Layer: vmm.h. Threads: any.
#include <algorithm>

#include "implemented.h"
#include "tests/simcuda/driver.h"
#include "tests/simcuda/entry.h"
#include "tests/simcuda/vmm.h"

namespace simcuda {
namespace {

bool covers(CUmemAccess_flags access, Use use) {
  return access == CU_MEM_ACCESS_FLAGS_PROT_READWRITE || (access == CU_MEM_ACCESS_FLAGS_PROT_READ && use == Use::kRead);
}

// INVALID_VALUE, INVALID_DEVICE: no mapping can store the access of this location.
CUresult check_location(const CUmemLocation &location, const Mapping &mapping) {
  if (location.type == CU_MEM_LOCATION_TYPE_DEVICE) {
    Device *device = nullptr;
    return device_of(location.id, &device);
  }
  const bool host = location.type == CU_MEM_LOCATION_TYPE_HOST || location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA;
  return host && mapping.memory->on_host() ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

bool is_access(CUmemAccess_flags flags) {
  return flags == CU_MEM_ACCESS_FLAGS_PROT_NONE || flags == CU_MEM_ACCESS_FLAGS_PROT_READ ||
         flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
}

// Whole adjacent mappings that fill the range exactly.
std::vector<std::pair<std::uint64_t, Mapping *>> whole_mappings(std::uint64_t address, std::uint64_t bytes) {
  std::vector<std::pair<std::uint64_t, Mapping *>> whole;
  std::uint64_t done = 0;
  while (done < bytes) {
    const auto found = mapped_at(address + done);
    if (!found || found->mapping == nullptr || found->at != address + done) return {};
    done += found->mapping->bytes;
    whole.emplace_back(found->at, found->mapping);
  }
  if (done != bytes) whole.clear();
  return whole;
}

}  // namespace

bool reachable(const Device &device, Use use, std::uint64_t address, std::uint64_t bytes) {
  const auto ordinal = static_cast<std::size_t>(ordinal_of(device));
  const auto first = mapped_at(address);
  if (!first || bytes > first->reservation->reach - (address - first->reserved_at)) return false;
  for (std::uint64_t at = address; at < address + bytes;) {
    const auto found = mapped_at(at);
    if (found->mapping == nullptr || !covers(found->mapping->devices[ordinal], use)) return false;
    at = found->at + found->mapping->bytes;
  }
  return true;
}

// All or nothing.
CUresult cuMemSetAccess(CUdeviceptr ptr, size_t size, const CUmemAccessDesc *desc, size_t count) {
  if (desc == nullptr || count == 0 || size == 0) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock(driver().mutex);
  const auto mappings = whole_mappings(ptr, size);
  if (mappings.empty()) return CUDA_ERROR_INVALID_VALUE;
  for (const auto &[address, mapping] : mappings) {
    for (std::size_t i = 0; i < count; ++i) {
      // H100, driver 580.159: a device that does not exist is INVALID_VALUE, too.
      if (!is_access(desc[i].flags) || check_location(desc[i].location, *mapping) != CUDA_SUCCESS) {
        return CUDA_ERROR_INVALID_VALUE;
      }
    }
  }
  for (const auto &[address, mapping] : mappings) {
    const auto devices = mapping->devices;
    for (std::size_t i = 0; i < count; ++i) {
      if (desc[i].location.type == CU_MEM_LOCATION_TYPE_DEVICE) {
        mapping->devices[static_cast<std::size_t>(desc[i].location.id)] = desc[i].flags;
      } else {
        let_host(address, *mapping, desc[i].flags);
      }
    }
    if (mapping->devices != devices) about(mapping->bytes);  // what a mapping has already costs no mapping
  }
  return CUDA_SUCCESS;
}

CUresult cuMemGetAccess(unsigned long long *flags, const CUmemLocation *location, CUdeviceptr ptr) {
  const Lock lock(driver().mutex);
  const auto found = mapped_at(ptr);
  if (flags == nullptr || location == nullptr || !found || found->mapping == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult error = check_location(*location, *found->mapping); error != CUDA_SUCCESS) return error;
  const bool device = location->type == CU_MEM_LOCATION_TYPE_DEVICE;
  *flags = device ? found->mapping->devices[static_cast<std::size_t>(location->id)] : found->mapping->host;
  return CUDA_SUCCESS;
}

}  // namespace simcuda
