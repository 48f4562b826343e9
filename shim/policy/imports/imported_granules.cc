#include "policy/imports/imported_granules.h"

#include "base/clock.h"
#include "policy/contexts/captures.h"

namespace ration::policy {
namespace {

using driver::real;

constexpr std::uint64_t kAnswerNs = 2'000'000'000;  // for the replies with all parts of a block

bool possible() {
  return real.cuMemImportFromShareableHandle.present() && real.cuMemAddressReserve.present() &&
         real.cuMemAddressFree.present() && real.cuMemMap.present() && real.cuMemUnmap.present() &&
         real.cuMemSetAccess.present() && real.cuMemRelease.present() && real.cuCtxGetDevice.present();
}

// Converts an error to one that the driver may return from cuIpcOpenMemHandle.
CUresult as_of_open(CUresult error) {
  return error == CUDA_ERROR_OUT_OF_MEMORY ? error : CUDA_ERROR_MAP_FAILED;
}

}  // namespace

CUresult ImportedGranules::map(const std::string &state_folder, const ledger::ExportToken &token,
                               const ledger::ExportedBlock &block, std::unique_ptr<ImportedGranules> &made,
                               std::string &problem) {
  CUdevice current = 0;
  if (!possible() || real.cuCtxGetDevice(&current) != CUDA_SUCCESS) {
    problem = "this driver cannot map what another process's block lies in";
    return CUDA_ERROR_MAP_FAILED;
  }
  const std::uint64_t deadline = now_ns() + kAnswerNs;
  const RelaxedCapture relaxed;
  CUdeviceptr base = 0;
  if (const CUresult error = real.cuMemAddressReserve(&base, block.slab_bytes, 0, 0, 0); error != CUDA_SUCCESS) {
    return as_of_open(error);
  }
  std::unique_ptr<ImportedGranules> mapping;
  try {
    mapping.reset(new ImportedGranules(base, block.slab_bytes));
  } catch (...) {
    (void)real.cuMemAddressFree(base, block.slab_bytes);
    throw;
  }
  ledger::PartRequest request;
  request.token = token;
  while (mapping->mapped_ < mapping->bytes_) {
    ledger::Parts parts;
    switch (ledger::fetch_parts(state_folder, request, deadline, parts)) {
      case ledger::Fetched::parts:
        break;
      case ledger::Fetched::no_descriptors:
        problem = "too many open files, here or in the process that shares the block";
        return CUDA_ERROR_OUT_OF_MEMORY;
      case ledger::Fetched::no_answer:
        problem = "the process that shares the block does not answer";
        return CUDA_ERROR_INVALID_VALUE;
      case ledger::Fetched::no_block:
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (const CUresult error = mapping->take(parts); error != CUDA_SUCCESS) {
      return error;
    }
    request.first += parts.reply.count;
  }
  const CUresult result = mapping->allow_access(current);
  if (result == CUDA_SUCCESS) {
    made = std::move(mapping);
  }
  return result;
}

// Maps the parts one after the other, each as a whole. The mappings keep the memory alive.
CUresult ImportedGranules::take(const ledger::Parts &parts) {
  for (std::uint32_t i = 0; i < parts.reply.count; ++i) {
    const std::uint64_t bytes = parts.reply.bytes[i];
    if (bytes == 0 || bytes > bytes_ - mapped_) {
      return CUDA_ERROR_INVALID_VALUE;  // the exporter's reply is not valid
    }
    CUmemGenericAllocationHandle handle = 0;
    void *const file = reinterpret_cast<void *>(static_cast<std::uintptr_t>(parts.files[i].number()));
    CUresult error = real.cuMemImportFromShareableHandle(&handle, file, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    if (error != CUDA_SUCCESS) {
      return as_of_open(error);
    }
    CUmemAllocationProp properties{};
    if (device_ < 0 && real.cuMemGetAllocationPropertiesFromHandle.present() &&
        real.cuMemGetAllocationPropertiesFromHandle(&properties, handle) == CUDA_SUCCESS) {
      device_ = properties.location.id;
    }
    error = real.cuMemMap(base_ + mapped_, bytes, 0, handle, 0);
    if (real.cuMemRelease(handle) != CUDA_SUCCESS) {
      (void)real.cuMemRelease(handle);  // tries again, because this handle keeps the exporter's memory alive
    }
    if (error != CUDA_SUCCESS) {
      return as_of_open(error);
    }
    mapped_ += bytes;
  }
  return parts.reply.count != 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

bool ImportedGranules::allow(CUdevice device) const noexcept {
  const CUmemAccessDesc access{{CU_MEM_LOCATION_TYPE_DEVICE, device}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  const RelaxedCapture relaxed;
  return real.cuMemSetAccess(base_, bytes_, &access, 1) == CUDA_SUCCESS;
}

CUresult ImportedGranules::allow_access(CUdevice current) const noexcept {
  if (!allow(current)) {
    return CUDA_ERROR_MAP_FAILED;
  }
  if (device_ >= 0 && device_ != current) {
    (void)allow(device_);
  }
  return CUDA_SUCCESS;
}

ImportedGranules::~ImportedGranules() {
  const RelaxedCapture relaxed;
  const auto unmap = [&] { return real.cuMemUnmap(base_, mapped_) == CUDA_SUCCESS; };
  if (mapped_ == 0 || unmap() || unmap()) {  // tries twice, as above
    (void)real.cuMemAddressFree(base_, bytes_);
  }
}

}  // namespace ration::policy
