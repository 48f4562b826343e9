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
constexpr int kRdmaSupported = 110;  // ..._GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED
constexpr int kMinimum = 0;          // CU_MEM_ALLOC_GRANULARITY_MINIMUM
// Addresses cost nothing but page tables of what is mapped: a view has them for itself for as long as it may be used.
// Fewer where the process has no more.
constexpr std::uint64_t kViewSpaces = 16;

CUmemAllocationProp properties_on(CUdevice device, GranuleKind kind) {
  CUmemAllocationProp properties{};
  if (kind.exportable) {
    properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  }
  properties.allocFlags.gpuDirectRDMACapable = kind.rdma ? 1 : 0;
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, device};
  return properties;
}

// The first function that granules need and the driver lacks.
const char *missing_function() {
  const struct {
    bool present;
    const char *name;
  } needed[] = {{real.cuMemCreate.present(), "cuMemCreate"},
                {real.cuMemRelease.present(), "cuMemRelease"},
                {real.cuMemMap.present(), "cuMemMap"},
                {real.cuMemUnmap.present(), "cuMemUnmap"},
                {real.cuMemSetAccess.present(), "cuMemSetAccess"},
                {real.cuMemAddressReserve.present(), "cuMemAddressReserve"},
                {real.cuMemAddressFree.present(), "cuMemAddressFree"},
                {real.cuMemGetAllocationGranularity.present(), "cuMemGetAllocationGranularity"},
                {real.cuDeviceGetAttribute.present(), "cuDeviceGetAttribute"},
                {FenceTracker::can_tell(), "events"}};
  for (const auto &each : needed) {
    if (!each.present) {
      return each.name;
    }
  }
  return nullptr;
}

bool has_attribute(CUdevice device, int attribute) {
  int supported = 0;
  return real.cuDeviceGetAttribute(&supported, attribute, device) == CUDA_SUCCESS && supported != 0;
}

}  // namespace

GranuleMemory::Support GranuleMemory::support_on(CUdevice device) {
  if (const char *missing = missing_function()) {
    return {0, {}, std::string("the driver lacks ") + missing};
  }
  const RelaxedCapture relaxed;
  if (!has_attribute(device, kVirtualMemoryManagementSupported)) {
    return {0, {}, "the device has no virtual memory management"};
  }
  const GranuleKind kind{real.cuMemExportToShareableHandle.present() && has_attribute(device, kDescriptorsSupported),
                         has_attribute(device, kRdmaSupported)};
  const CUmemAllocationProp properties = properties_on(device, kind);
  std::size_t page = 0;
  if (real.cuMemGetAllocationGranularity(&page, &properties, kMinimum) != CUDA_SUCCESS || !std::has_single_bit(page) ||
      page < pool::kUnitBytes) {
    return {0, {}, "the driver states no granularity"};
  }
  return {page, kind, "the device maps granules of " + std::to_string(page / 1024) + "KiB"};
}

std::optional<pool::stitch::Layout> GranuleMemory::reserve(std::uint64_t page_bytes, std::uint64_t bytes,
                                                           std::uint64_t slab) {
  pool::stitch::Layout layout{};
  layout.page_bytes = page_bytes;
  layout.home_bytes = pool::stitch::home_bytes(bytes, page_bytes);
  layout.slab = slab;
  CUdeviceptr address = 0;  // one range, so that the views lie above the home range
  CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
  for (std::uint64_t spaces = kViewSpaces; spaces != 0 && result != CUDA_SUCCESS; spaces /= 4) {
    layout.views_bytes = spaces * layout.home_bytes;
    result = real.cuMemAddressReserve(&address, layout.home_bytes + layout.views_bytes, page_bytes, 0, 0);
  }
  if (result != CUDA_SUCCESS) {
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

CUresult GranuleMemory::create_handle(CUdevice device, std::uint64_t bytes, GranuleKind kind,
                                      CUmemGenericAllocationHandle &handle) {
  const CUmemAllocationProp properties = properties_on(device, kind);
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
  if (create_handle(pools_.handle_of(context_->device), bytes, pools_.granule_kind(context_->device), handle) !=
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
    ++released_;
  } else {
    pools_.unreturned_.add_handle(context_->device, handle, bytes);
  }
}

bool GranuleMemory::map(pool::Address address, std::uint64_t handle, std::uint64_t bytes) noexcept {
  const RelaxedCapture relaxed;
  return real.cuMemMap(address, bytes, 0, handle, 0) == CUDA_SUCCESS;
}

bool GranuleMemory::allow(pool::Address address, std::uint64_t bytes) noexcept {
  const RelaxedCapture relaxed;
  return pools_.allow_access(context_->device, address, bytes) == CUDA_SUCCESS;
}

bool GranuleMemory::unmap(pool::Address address, std::uint64_t bytes) noexcept {
  const RelaxedCapture relaxed;
  return real.cuMemUnmap(address, bytes) == CUDA_SUCCESS;
}

void GranuleMemory::leave_mapped(std::uint64_t address, std::uint64_t bytes) noexcept {
  const std::uint64_t charged = std::min(reserved_, bytes);
  reserved_ -= charged;
  pools_.unreturned_.add_mapping(context_->device, address, bytes, charged);
}

void GranuleMemory::release_rest() noexcept {
  if (reserved_ != 0) {
    pools_.ledger_.account(context_->device).release(reserved_);
    reserved_ = 0;
    pools_.publish(context_->device);
  }
}

}  // namespace ration::policy
