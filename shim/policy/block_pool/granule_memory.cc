#include "policy/block_pool/granule_memory.h"

#include <algorithm>

#include "base/clock.h"
#include "policy/contexts/captures.h"

namespace ration::policy {

using driver::real;

void GranuleLog::note(const Context &context, std::uint64_t handle, std::uint64_t bytes, const char *why,
                      std::uint64_t duration_ns) {
  const std::uint64_t number = pools_.next_number();
  {
    const Guard guard(mutex_);
    numbers_.emplace(handle, number);
  }
  events::SlabAlloc event{handle, bytes, context.device, context.number, number, "cuMemCreate", why, duration_ns};
  event.granule = true;
  journal_.record(event);
  pools_.on(context.device).note_taken(bytes);
}

void GranuleLog::note_end(const char *api, const Context &context, std::uint64_t handle, std::uint64_t bytes) noexcept {
  std::uint64_t number = 0;
  {
    const Guard guard(mutex_);
    const auto found = numbers_.find(handle);
    if (found != numbers_.end()) {
      number = found->second;
      numbers_.erase(found);
    }
  }
  journal_.record(events::SlabFree{handle, bytes, context.device, context.number, number, api, true});
  pools_.known(context.device)->note_gone(bytes);
}

std::optional<std::uint64_t> GranuleMemory::create(std::uint64_t bytes) noexcept try {
  const std::uint64_t used = std::min(reserved_, bytes);
  if (bytes > used && account_.reserve(bytes - used, ledger::Effort::kImmediate) != ledger::ReserveOutcome::granted) {
    return std::nullopt;
  }
  const std::uint64_t start = now_ns();
  const RelaxedCapture relaxed;
  CUmemGenericAllocationHandle handle = 0;
  const int device = context_->device;
  if (GranuleSupport::create(parts_.support.handle_of(device), bytes, parts_.support.kind(device), handle) !=
      CUDA_SUCCESS) {
    account_.release(bytes - used);
    return std::nullopt;
  }
  reserved_ -= used;
  parts_.log.note(*context_, handle, bytes, "stitch", now_ns() - start);
  return handle;
} catch (...) {  // no memory of the host to note it: it stays charged, and goes with the process
  return std::nullopt;
}

void GranuleMemory::release(std::uint64_t handle, std::uint64_t bytes) noexcept {
  const RelaxedCapture relaxed;
  parts_.log.note_end(api_, *context_, handle, bytes);
  if (real.cuMemRelease(handle) == CUDA_SUCCESS) {
    reserved_ += bytes;
    ++released_;
  } else {
    parts_.unreturned.add_handle(context_->device, handle, bytes);
  }
}

bool GranuleMemory::map(pool::Address address, std::uint64_t handle, std::uint64_t bytes) noexcept {
  const RelaxedCapture relaxed;
  return real.cuMemMap(address, bytes, 0, handle, 0) == CUDA_SUCCESS;
}

bool GranuleMemory::allow(pool::Address address, std::uint64_t bytes) noexcept {
  const RelaxedCapture relaxed;
  return parts_.support.allow_access(context_->device, address, bytes) == CUDA_SUCCESS;
}

bool GranuleMemory::unmap(pool::Address address, std::uint64_t bytes) noexcept {
  const RelaxedCapture relaxed;
  return real.cuMemUnmap(address, bytes) == CUDA_SUCCESS;
}

void GranuleMemory::leave_mapped(std::uint64_t address, std::uint64_t bytes) noexcept {
  const std::uint64_t charged = std::min(reserved_, bytes);
  reserved_ -= charged;
  parts_.unreturned.add_mapping(context_->device, address, bytes, charged);
}

void GranuleMemory::release_rest() noexcept {
  if (reserved_ != 0) {
    account_.release(reserved_);
    reserved_ = 0;
    parts_.publication.publish(context_->device);
  }
}

}  // namespace ration::policy
