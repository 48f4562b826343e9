#include "policy/block_pool/granule_memory.h"

#include <algorithm>
#include <bit>

#include "base/clock.h"
#include "pool/stitch/sizes.h"

namespace ration::policy {
namespace {

using driver::real;

constexpr int kVirtualMemoryManagementSupported = 102;  // cuda.h, CU_DEVICE_ATTRIBUTE_...
constexpr int kDescriptorsSupported = 103;
constexpr int kMinimum = 0;  // CU_MEM_ALLOC_GRANULARITY_MINIMUM
// Addresses cost nothing but page tables of what is mapped: a view has them for itself for as long as it may be used.
constexpr std::uint64_t kViewSpaces = 16;

CUmemAllocationProp properties_on(CUdevice device, bool exportable) {
  CUmemAllocationProp properties{};
  if (exportable) {
    properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  }
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, device};
  return properties;
}

// The driver may say that it can what it cannot: in a container without its device files, for instance.
bool works_on(CUdevice device, std::uint64_t bytes, bool exportable) {
  CUmemGenericAllocationHandle handle = 0;
  CUdeviceptr address = 0;
  if (GranuleMemory::create_handle(device, bytes, exportable, handle) != CUDA_SUCCESS) {
    return false;
  }
  bool works = false;
  if (real.cuMemAddressReserve(&address, bytes, 0, 0, 0) == CUDA_SUCCESS) {
    if (real.cuMemMap(address, bytes, 0, handle, 0) == CUDA_SUCCESS) {
      const CUmemAccessDesc access{{CU_MEM_LOCATION_TYPE_DEVICE, device}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
      works = real.cuMemSetAccess(address, bytes, &access, 1) == CUDA_SUCCESS;
      works = real.cuMemUnmap(address, bytes) == CUDA_SUCCESS && works;
    }
    works = real.cuMemAddressFree(address, bytes) == CUDA_SUCCESS && works;
  }
  return real.cuMemRelease(handle) == CUDA_SUCCESS && works;
}

bool has_attribute(CUdevice device, int attribute) {
  int supported = 0;
  return real.cuDeviceGetAttribute(&supported, attribute, device) == CUDA_SUCCESS && supported != 0;
}

std::uint64_t page_that_works(CUdevice device, bool exportable) {
  const CUmemAllocationProp properties = properties_on(device, exportable);
  std::size_t page = 0;
  const bool works = real.cuMemGetAllocationGranularity(&page, &properties, kMinimum) == CUDA_SUCCESS &&
                     std::has_single_bit(page) && page >= pool::kGranuleBytes && works_on(device, page, exportable);
  return works ? page : 0;
}

}  // namespace

bool GranuleMemory::possible() {
  return real.cuMemCreate.present() && real.cuMemRelease.present() && real.cuMemMap.present() &&
         real.cuMemUnmap.present() && real.cuMemSetAccess.present() && real.cuMemAddressReserve.present() &&
         real.cuMemAddressFree.present() && real.cuMemGetAllocationGranularity.present() &&
         real.cuDeviceGetAttribute.present() && FenceTracker::can_tell();
}

std::uint64_t GranuleMemory::page_bytes_of(CUdevice device, bool &exportable) {
  const RelaxedCapture relaxed;
  if (!possible() || !has_attribute(device, kVirtualMemoryManagementSupported)) {
    return 0;
  }
  exportable = real.cuMemExportToShareableHandle.present() && has_attribute(device, kDescriptorsSupported);
  std::uint64_t page = exportable ? page_that_works(device, true) : 0;
  if (page == 0) {
    exportable = false;
    page = page_that_works(device, false);
  }
  return page;
}

std::optional<pool::stitch::Layout> GranuleMemory::reserve(std::uint64_t page_bytes, std::uint64_t bytes,
                                                           std::uint64_t slab) {
  pool::stitch::Layout layout{};
  layout.page_bytes = page_bytes;
  layout.home_bytes = pool::stitch::home_bytes(bytes, page_bytes);
  layout.views_bytes = kViewSpaces * layout.home_bytes;
  layout.slab = slab;
  CUdeviceptr address = 0;  // one range, so that the views lie above the home range
  if (real.cuMemAddressReserve(&address, layout.home_bytes + layout.views_bytes, page_bytes, 0, 0) != CUDA_SUCCESS) {
    return std::nullopt;
  }
  layout.home = address;
  layout.views = address + layout.home_bytes;
  if (address % page_bytes != 0) {
    give_up(layout);
    return std::nullopt;
  }
  return layout;
}

void GranuleMemory::give_up(const pool::stitch::Layout &layout) noexcept {
  (void)real.cuMemAddressFree(layout.home, layout.home_bytes + layout.views_bytes);
}

CUresult GranuleMemory::create_handle(CUdevice device, std::uint64_t bytes, bool exportable,
                                      CUmemGenericAllocationHandle &handle) {
  const CUmemAllocationProp properties = properties_on(device, exportable);
  return real.cuMemCreate(&handle, bytes, &properties, 0);
}

std::optional<std::uint64_t> GranuleMemory::create(std::uint64_t bytes) noexcept try {
  ledger::Account &account = pools_.ledger_.account(context_->device);
  const std::uint64_t used = std::min(reserved_, bytes);
  if (bytes > used && account.reserve(bytes - used, ledger::Effort::kImmediate) != ledger::ReserveOutcome::granted) {
    return std::nullopt;
  }
  const std::uint64_t start = now_ns();
  const RelaxedCapture relaxed;
  CUmemGenericAllocationHandle handle = 0;
  if (create_handle(pools_.handle_of(context_->device), bytes, pools_.can_share_granules(context_->device), handle) !=
      CUDA_SUCCESS) {
    account.release(bytes - used);
    return std::nullopt;
  }
  reserved_ -= used;
  pools_.note_granule(handle, bytes, "stitch", *context_, now_ns() - start);
  return handle;
} catch (...) {  // no memory of the host to note it: it stays charged, and goes with the process
  return std::nullopt;
}

void GranuleMemory::release(std::uint64_t handle, std::uint64_t bytes) noexcept {
  const RelaxedCapture relaxed;
  pools_.note_granule_end(handle, bytes, api_, *context_);
  if (real.cuMemRelease(handle) == CUDA_SUCCESS) {
    reserved_ += bytes;
  }
}

bool GranuleMemory::map(pool::Address address, std::uint64_t handle, std::uint64_t bytes) noexcept {
  const RelaxedCapture relaxed;
  return real.cuMemMap(address, bytes, 0, handle, 0) == CUDA_SUCCESS;
}

bool GranuleMemory::allow(pool::Address address, std::uint64_t bytes) noexcept {
  const RelaxedCapture relaxed;
  return pools_.allow_access(context_->device, address, bytes);
}

bool GranuleMemory::unmap(pool::Address address, std::uint64_t bytes) noexcept {
  const RelaxedCapture relaxed;
  return real.cuMemUnmap(address, bytes) == CUDA_SUCCESS;
}

void GranuleMemory::settle() noexcept {
  if (reserved_ != 0) {
    pools_.ledger_.account(context_->device).release(reserved_);
    reserved_ = 0;
    pools_.publish(context_->device);
  }
}

}  // namespace ration::policy
