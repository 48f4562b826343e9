#include "policy/block_pool/granule_check.h"

#include <utility>

#include "policy/contexts/captures.h"

namespace ration::policy {
namespace {

using driver::real;

constexpr unsigned kNonBlocking = 1;  // CU_STREAM_NON_BLOCKING
constexpr std::uint64_t kPattern = 0x6e6f697461722121;

bool failed(CUresult &error, CUresult result) {
  if (result != CUDA_SUCCESS) {
    error = result;
  }
  return result != CUDA_SUCCESS;
}

}  // namespace

GranuleCheck::Result GranuleCheck::run(GranuleKind &kind) {
  if (account_.reserve(layout_.page_bytes, ledger::Effort::kImmediate) != ledger::ReserveOutcome::granted) {
    return Result::no_room;  // which says nothing about granules
  }
  const RelaxedCapture relaxed;
  CUresult error = CUDA_SUCCESS;
  bool worked = works(kind, error);
  if (!worked && error != CUDA_ERROR_OUT_OF_MEMORY && (kind.exportable || kind.rdma) && !is_left_) {
    kind = {};
    error = CUDA_SUCCESS;
    worked = works(kind, error);
  }
  if (!is_left_) {
    account_.release(layout_.page_bytes);
  }
  return worked ? Result::works : error == CUDA_ERROR_OUT_OF_MEMORY ? Result::no_room : Result::fails;
}

bool GranuleCheck::works(GranuleKind kind, CUresult &error) {
  const char *wrong = create_and_map(kind, error);
  wrong = wrong != nullptr ? wrong : copy(error);
  wrong = wrong != nullptr ? wrong : unmap_alias(error);
  if (wrong != nullptr) {
    reason_ = std::string("a first granule failed: ") + wrong + " answered " + std::to_string(error);
  }
  undo();
  return wrong == nullptr;
}

const char *GranuleCheck::create_and_map(GranuleKind kind, CUresult &error) {
  const std::uint64_t bytes = layout_.page_bytes;
  if (failed(error, GranuleSupport::create(handle_, bytes, kind, granule_))) {
    return "cuMemCreate";
  }
  made_ = true;
  if (failed(error, real.cuMemMap(layout_.home, bytes, 0, granule_, 0))) {
    return "cuMemMap";
  }
  mapped_ = true;
  const CUmemAccessDesc access{{CU_MEM_LOCATION_TYPE_DEVICE, handle_}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  return failed(error, real.cuMemSetAccess(layout_.home, bytes, &access, 1)) ? "cuMemSetAccess" : nullptr;
}

// Copies in a stream of its own, which waits for no other stream and belongs to no capture.
const char *GranuleCheck::copy(CUresult &error) const {
  if (!real.cuStreamCreate.present() || !real.cuStreamDestroy_v2.present() || !real.cuStreamSynchronize.present() ||
      !real.cuMemcpyHtoDAsync_v2.present() || !real.cuMemcpyDtoHAsync_v2.present()) {
    return nullptr;  // then no program can copy
  }
  CUstream stream = nullptr;
  if (failed(error, real.cuStreamCreate(&stream, kNonBlocking))) {
    return "cuStreamCreate";
  }
  const std::uint64_t written = kPattern ^ layout_.home;
  std::uint64_t read = 0;
  const CUdeviceptr last = layout_.home + layout_.page_bytes - sizeof(written);
  const bool submitted = !failed(error, real.cuMemcpyHtoDAsync_v2(last, &written, sizeof(written), stream)) &&
                         !failed(error, real.cuMemcpyDtoHAsync_v2(&read, last, sizeof(read), stream));
  // Nothing may run when the granule is unmapped.
  const bool done = !failed(error, real.cuStreamSynchronize(stream));
  (void)real.cuStreamDestroy_v2(stream);
  if (submitted && done && read == written) {
    return nullptr;
  }
  error = error == CUDA_SUCCESS ? CUDA_ERROR_UNKNOWN : error;
  return "a copy";
}

// Maps the granule a second time, as a view may. The mapping gets no access, so that no page table has to change.
const char *GranuleCheck::unmap_alias(CUresult &error) {
  if (failed(error, real.cuMemMap(layout_.views, layout_.page_bytes, 0, granule_, 0))) {
    return "cuMemMap";
  }
  aliased_ = true;
  if (failed(error, real.cuMemUnmap(layout_.views, layout_.page_bytes))) {
    return "cuMemUnmap";
  }
  aliased_ = false;
  return nullptr;
}

// Returns everything. If the driver refuses some of it, the memory is charged once, with the first part that was
// refused.
void GranuleCheck::undo() {
  std::uint64_t charged = layout_.page_bytes;
  const auto end_mapping = [&](bool &is_mapped, std::uint64_t address) {
    if (is_mapped && real.cuMemUnmap(address, layout_.page_bytes) != CUDA_SUCCESS) {
      unreturned_.add_mapping(device_, address, layout_.page_bytes, std::exchange(charged, 0));
    }
    is_mapped = false;
  };
  end_mapping(aliased_, layout_.views);
  end_mapping(mapped_, layout_.home);
  if (made_ && real.cuMemRelease(granule_) != CUDA_SUCCESS) {
    unreturned_.add_handle(device_, granule_, std::exchange(charged, 0));
  }
  made_ = false;
  is_left_ = charged == 0;
}

}  // namespace ration::policy
