#include "policy/block_pool/granule_support.h"

#include <algorithm>
#include <bit>

#include "policy/contexts/captures.h"
#include "policy/contexts/fence_tracker.h"
#include "pool/stitch/sizes.h"

namespace ration::policy {
namespace {

using driver::real;

constexpr int kVirtualMemoryManagementSupported = 102;  // cuda.h, CU_DEVICE_ATTRIBUTE_...
constexpr int kDescriptorsSupported = 103;
constexpr int kRdmaSupported = 110;       // ..._GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED
constexpr int kMinimum = 0;               // CU_MEM_ALLOC_GRANULARITY_MINIMUM
constexpr std::uint64_t kMostPeers = 64;  // one bit each
// With granules, the part of a limit beyond whole pages is lost. If more than this fraction of the limit would be lost,
// slabs serve it better.
constexpr std::uint64_t kLostPart = 1024;
constexpr std::uint64_t kLostPartOfGroup = 128;

CUmemAllocationProp properties_on(CUdevice handle, GranuleKind kind) {
  CUmemAllocationProp properties{};
  if (kind.exportable) {
    properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  }
  properties.allocFlags.gpuDirectRDMACapable = kind.rdma ? 1 : 0;
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, handle};
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

bool has_attribute(CUdevice handle, int attribute) {
  int supported = 0;
  return real.cuDeviceGetAttribute(&supported, attribute, handle) == CUDA_SUCCESS && supported != 0;
}

}  // namespace

GranuleSupport::Answer GranuleSupport::ask(CUdevice handle) {
  if (const char *missing = missing_function()) {
    return {0, {}, std::string("the driver lacks ") + missing};
  }
  const RelaxedCapture relaxed;
  if (!has_attribute(handle, kVirtualMemoryManagementSupported)) {
    return {0, {}, "the device has no virtual memory management"};
  }
  const GranuleKind kind{real.cuMemExportToShareableHandle.present() && has_attribute(handle, kDescriptorsSupported),
                         has_attribute(handle, kRdmaSupported)};
  const CUmemAllocationProp properties = properties_on(handle, kind);
  std::size_t page = 0;
  if (real.cuMemGetAllocationGranularity(&page, &properties, kMinimum) != CUDA_SUCCESS || !std::has_single_bit(page) ||
      page < pool::kUnitBytes) {
    return {0, {}, "the driver states no granularity"};
  }
  return {page, kind, "the device maps granules of " + std::to_string(page / 1024) + "KiB"};
}

std::optional<GranuleSupport::Answer> GranuleSupport::known(int device) const {
  const std::uint64_t page_bytes = of_[device].page_bytes.load();
  return page_bytes == kNotKnown ? std::nullopt : std::optional(Answer{page_bytes, kind(device), {}});
}

void GranuleSupport::note(int device, std::uint64_t page_bytes, GranuleKind kind) {
  of_[device].kind.store(kind);
  of_[device].page_bytes.store(page_bytes);
}

BackingKind GranuleSupport::backing_on(CUdevice handle, std::string &reason) {
  if (asked_ == BackingKind::slab) {
    reason = "slab was asked for";
    return BackingKind::slab;
  }
  const Answer found = ask(handle);
  reason = found.reason;
  if (found.page_bytes == 0) {
    return BackingKind::slab;
  }
  if (const Device *device = devices_.find_handle(handle)) {
    const std::string pages = "pages of " + std::to_string(found.page_bytes >> 20U) + "MiB";
    if (loses_much(device->ordinal, found.page_bytes)) {
      reason = "the limit is not in whole " + pages;
      return BackingKind::slab;
    }
    const std::uint64_t bytes = granule_bytes(device->ordinal, found.page_bytes);
    reason = "granules of " + std::to_string(bytes >> 20U) + "MiB, in " + pages;
  }
  return BackingKind::vmm;
}

bool GranuleSupport::loses_much(int device, std::uint64_t page_bytes) const {
  if (asked_ != BackingKind::best) {
    return false;
  }
  const ledger::Account &account = ledger_.account(device);
  // More may be lost of a group's limit, because nothing of a slab goes back to other members while a block is in it.
  const std::uint64_t limit = std::min(account.limit(), account.group_limit());
  const std::uint64_t part = account.group_limit() <= account.limit() ? kLostPartOfGroup : kLostPart;
  return limit != UINT64_MAX && limit % page_bytes > limit / part;
}

std::uint64_t GranuleSupport::granule_bytes(int device, std::uint64_t page_bytes) const {
  const std::uint64_t total = devices_.total_on(device);
  const ledger::Account &account = ledger_.account(device);
  const std::uint64_t most = std::min(account.limit(), account.group_limit());
  return pool::stitch::granule_bytes(total == 0 ? most : std::min(most, total), page_bytes,
                                     devices_.preallocation_on(device).granule_bytes);
}

CUdevice GranuleSupport::handle_of(int device) const {
  const Device *known = devices_.find(device);
  return known != nullptr ? known->handle : device;
}

CUresult GranuleSupport::create(CUdevice handle, std::uint64_t bytes, GranuleKind kind,
                                CUmemGenericAllocationHandle &granule) {
  const CUmemAllocationProp properties = properties_on(handle, kind);
  return real.cuMemCreate(&granule, bytes, &properties, 0);
}

CUresult GranuleSupport::allow_access(int device, std::uint64_t address, std::uint64_t bytes) const noexcept {
  CUmemAccessDesc access[1 + kMostPeers];
  std::size_t count = 0;
  access[count++] = {{CU_MEM_LOCATION_TYPE_DEVICE, handle_of(device)}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  const std::uint64_t peers = of_[device].peers.load();
  for (int peer = 0; peer < static_cast<int>(kMostPeers); ++peer) {
    if ((peers >> peer & 1) != 0 && peer != device) {
      access[count++] = {{CU_MEM_LOCATION_TYPE_DEVICE, handle_of(peer)}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    }
  }
  return real.cuMemSetAccess(address, bytes, access, count);
}

bool GranuleSupport::add_peer(int device, int peer) {
  return peer >= 0 && peer < static_cast<int>(kMostPeers) && device >= 0 && device < ledger::kMaxDevices &&
         peer != device && (of_[device].peers.fetch_or(std::uint64_t{1} << peer) >> peer & 1) == 0;
}

}  // namespace ration::policy
