#include "policy/block_pool/first_granule.h"

#include <utility>

#include "policy/block_pool/granule_memory.h"

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

FirstGranule::Result FirstGranule::make(GranuleKind &kind) {
  ledger::Account &account = pools_.ledger_.account(device_);
  if (account.reserve(layout_.page_bytes, ledger::Effort::kImmediate) != ledger::ReserveOutcome::granted) {
    return Result::no_room;  // it says nothing of granules
  }
  const RelaxedCapture relaxed;
  CUresult error = CUDA_SUCCESS;
  bool works = use(kind, error);
  if (!works && error != CUDA_ERROR_OUT_OF_MEMORY && (kind.exportable || kind.rdma) && !is_left_) {
    kind = {};
    error = CUDA_SUCCESS;
    works = use(kind, error);
  }
  if (works && account.group_limit() != UINT64_MAX) {
    give_up();  // members that race for the last bytes would each hold one, and none would have enough
  } else if (!made_ && !is_left_) {
    account.release(layout_.page_bytes);
  }
  if (works) {
    return Result::works;
  }
  return error == CUDA_ERROR_OUT_OF_MEMORY ? Result::no_room : Result::fails;
}

// The driver may say that it can what it cannot: in a container without its device files, for instance.
bool FirstGranule::use(GranuleKind kind, CUresult &error) {
  const char *wrong = create_and_map(kind, error);
  wrong = wrong != nullptr ? wrong : copy(error);
  wrong = wrong != nullptr ? wrong : unmap_alias(error);
  if (wrong == nullptr) {
    return true;
  }
  reason_ = std::string("a first granule failed: ") + wrong + " answered " + std::to_string(error);
  undo();
  return false;
}

const char *FirstGranule::create_and_map(GranuleKind kind, CUresult &error) {
  const std::uint64_t bytes = layout_.page_bytes;
  if (failed(error, GranuleMemory::create_handle(pools_.handle_of(device_), bytes, kind, handle_))) {
    return "cuMemCreate";
  }
  made_ = true;
  if (failed(error, real.cuMemMap(layout_.home, bytes, 0, handle_, 0))) {
    return "cuMemMap";
  }
  mapped_ = true;
  return failed(error, pools_.allow_access(device_, layout_.home, bytes)) ? "cuMemSetAccess" : nullptr;
}

// In a stream of its own, which waits for no other and belongs to no capture.
const char *FirstGranule::copy(CUresult &error) {
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

// A second mapping, which a view may be; it has no access, so that no page table has to change.
const char *FirstGranule::unmap_alias(CUresult &error) {
  if (failed(error, real.cuMemMap(layout_.views, layout_.page_bytes, 0, handle_, 0))) {
    return "cuMemMap";
  }
  aliased_ = true;
  if (failed(error, real.cuMemUnmap(layout_.views, layout_.page_bytes))) {
    return "cuMemUnmap";
  }
  aliased_ = false;
  return nullptr;
}

// What stays is charged once, with the first of its parts that keeps the memory.
bool FirstGranule::undo() {
  std::uint64_t charged = layout_.page_bytes;
  const auto end_mapping = [&](bool &is_mapped, std::uint64_t address) {
    if (is_mapped && real.cuMemUnmap(address, layout_.page_bytes) != CUDA_SUCCESS) {
      pools_.unreturned_.add_mapping(device_, address, layout_.page_bytes, std::exchange(charged, 0));
    }
    is_mapped = false;
  };
  end_mapping(aliased_, layout_.views);
  end_mapping(mapped_, layout_.home);
  if (made_ && real.cuMemRelease(handle_) != CUDA_SUCCESS) {
    pools_.unreturned_.add_handle(device_, handle_, std::exchange(charged, 0));
  }
  made_ = false;
  is_left_ = charged == 0;
  return !is_left_;
}

void FirstGranule::give_up() {
  if (undo()) {
    pools_.ledger_.account(device_).release(layout_.page_bytes);
  }
}

}  // namespace ration::policy
