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

// The driver may say that it can what it cannot: in a container without its device files, for instance.
class FirstGranule {
 public:
  FirstGranule(CUdevice device, std::uint64_t bytes, GranuleKind kind) : device_(device), bytes_(bytes), kind_(kind) {}
  FirstGranule(const FirstGranule &) = delete;
  FirstGranule &operator=(const FirstGranule &) = delete;

  // The name of the first call that failed, and its error; nullptr: all of it works.
  const char *use(CUresult &error) {
    const char *failed = make(error);
    if (failed == nullptr) {
      failed = copy(error);
    }
    const char *const undone = undo(error);
    return failed != nullptr ? failed : undone;
  }
  bool is_gone() const { return !made_; }

 private:
  static bool failed(CUresult &error, CUresult result) {
    if (result != CUDA_SUCCESS) {
      error = result;
    }
    return result != CUDA_SUCCESS;
  }

  const char *make(CUresult &error) {
    if (failed(error, GranuleMemory::create_handle(device_, bytes_, kind_, handle_))) {
      return "cuMemCreate";
    }
    made_ = true;
    if (failed(error, real.cuMemAddressReserve(&address_, bytes_, 0, 0, 0))) {
      return "cuMemAddressReserve";
    }
    reserved_ = true;
    if (failed(error, real.cuMemMap(address_, bytes_, 0, handle_, 0))) {
      return "cuMemMap";
    }
    mapped_ = true;
    const CUmemAccessDesc access{{CU_MEM_LOCATION_TYPE_DEVICE, device_}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    return failed(error, real.cuMemSetAccess(address_, bytes_, &access, 1)) ? "cuMemSetAccess" : nullptr;
  }

  // In a stream of its own, which waits for nobody and belongs to no capture.
  const char *copy(CUresult &error) {
    if (!real.cuStreamCreate.present() || !real.cuStreamDestroy_v2.present() || !real.cuStreamSynchronize.present() ||
        !real.cuMemcpyHtoDAsync_v2.present() || !real.cuMemcpyDtoHAsync_v2.present()) {
      return nullptr;  // then nobody can copy
    }
    CUstream stream = nullptr;
    if (failed(error, real.cuStreamCreate(&stream, kNonBlocking))) {
      return "cuStreamCreate";
    }
    const std::uint64_t written = kPattern ^ address_;
    std::uint64_t read = 0;
    const CUdeviceptr last = address_ + bytes_ - sizeof(written);
    const bool submitted = !failed(error, real.cuMemcpyHtoDAsync_v2(last, &written, sizeof(written), stream)) &&
                           !failed(error, real.cuMemcpyDtoHAsync_v2(&read, last, sizeof(read), stream));
    // Nothing may run when the granule is unmapped.
    const bool done = !failed(error, real.cuStreamSynchronize(stream));
    const char *const wrong = submitted && done && read == written ? nullptr : "a copy";
    if (wrong != nullptr && error == CUDA_SUCCESS) {
      error = CUDA_ERROR_UNKNOWN;
    }
    (void)real.cuStreamDestroy_v2(stream);
    return wrong;
  }

  // What follows a failure fails, too: the first one counts.
  const char *undo(CUresult &error) {
    const char *wrong = nullptr;
    const auto note = [&](const char *call, CUresult result) {
      if (result != CUDA_SUCCESS && wrong == nullptr) {
        wrong = call;
        error = error == CUDA_SUCCESS ? result : error;
      }
      return result == CUDA_SUCCESS;
    };
    if (mapped_) {
      note("cuMemUnmap", real.cuMemUnmap(address_, bytes_));
    }
    if (reserved_) {
      note("cuMemAddressFree", real.cuMemAddressFree(address_, bytes_));
    }
    if (made_) {
      made_ = !note("cuMemRelease", real.cuMemRelease(handle_));
    }
    return wrong;
  }

  static constexpr unsigned kNonBlocking = 1;  // CU_STREAM_NON_BLOCKING
  static constexpr std::uint64_t kPattern = 0x6e6f697461722121;

  const CUdevice device_;
  const std::uint64_t bytes_;
  const GranuleKind kind_;
  CUmemGenericAllocationHandle handle_ = 0;
  CUdeviceptr address_ = 0;
  bool made_ = false;
  bool reserved_ = false;
  bool mapped_ = false;
};

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
      page < pool::kGranuleBytes) {
    return {0, {}, "the driver states no granularity"};
  }
  return {page, kind, "the device maps granules of " + std::to_string(page / 1024) + " KiB"};
}

GranuleMemory::Tried GranuleMemory::try_one(CUdevice device, Support &support, ledger::Account &account) {
  const std::uint64_t page_bytes = support.page_bytes;
  if (account.reserve(page_bytes, ledger::Effort::kImmediate) != ledger::ReserveOutcome::granted) {
    return Tried::no_room;
  }
  const RelaxedCapture relaxed;
  CUresult error = CUDA_SUCCESS;
  FirstGranule first(device, page_bytes, support.kind);
  const char *const failed = first.use(error);
  if (first.is_gone()) {
    account.release(page_bytes);
  }
  if (failed == nullptr) {
    return Tried::works;
  }
  if (error == CUDA_ERROR_OUT_OF_MEMORY) {
    return Tried::no_room;
  }
  if ((support.kind.exportable || support.kind.rdma) && first.is_gone()) {  // perhaps it can be had without
    support.kind = {};
    return try_one(device, support, account);
  }
  support.reason = std::string("a first granule failed: ") + failed + " answered " + std::to_string(error);
  return Tried::fails;
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
