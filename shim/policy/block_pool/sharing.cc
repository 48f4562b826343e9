#include "policy/block_pool/sharing.h"

#include <bit>

#include "policy/block_pool/backing.h"

namespace ration::policy {

CUresult Sharing::share(std::uint64_t address, const ContextRef &owner, CUipcMemHandle *handle, std::string &refused) {
  ContextPool &pool = *existing_pool(*owner);
  const ContextPool::InFlight in_flight(pool);
  const std::optional<pool::Block> block = block_at(address, *owner);
  if (!block || owner->ended_by.load() != nullptr) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  ledger::ExportedBlock in;
  in.bytes = block->requested;
  if (const CUresult result = pool.backing->locate(owner, *block, in, refused); result != CUDA_SUCCESS) {
    return result;
  }
  ledger::ExportToken token;
  for (const bool again : {false, true}) {
    switch (exports_.share(owner, *block, in, token, refused)) {
      case IpcExporter::Shared::shared:
        *handle = std::bit_cast<CUipcMemHandle>(token);
        refused.clear();
        return CUDA_SUCCESS;
      case IpcExporter::Shared::not_a_block:
        return CUDA_ERROR_INVALID_VALUE;
      case IpcExporter::Shared::no_file:
        return CUDA_ERROR_OUT_OF_MEMORY;
      case IpcExporter::Shared::no_place:
        refused = "more than " + std::to_string(ledger::shared::kExportRecords) + " blocks are shared";
        if (!again) {
          reclaim_unshared();
        }
        break;
    }
  }
  return CUDA_ERROR_OUT_OF_MEMORY;
}

// The context's end waits for calls in flight; a later call sees that the context has ended.
void Sharing::reclaim_unshared(std::size_t most) noexcept {
  exports_.reconcile(most, [this](const IpcExporter::Kept &kept) {
    ContextPool &pool = *existing_pool(*kept.owner);
    const ContextPool::InFlight in_flight(pool);
    return kept.owner->ended_by.load() == nullptr &&
           pools_.on(kept.owner->device).quarantine.take_back(pool, kept.address, kept.bytes);
  });
}

}  // namespace ration::policy
