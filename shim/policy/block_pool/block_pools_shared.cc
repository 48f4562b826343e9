// Blocks shared with other processes: the part of BlockPools that uses the IPC exporter.
// Layer: policy/block_pool.
#include <bit>
#include <cstring>

#include "policy/block_pool/block_pools.h"

namespace ration::policy {

using driver::real;

CUresult BlockPools::share(std::uint64_t address, const ContextRef &owner, CUipcMemHandle *handle,
                           std::string &refused) {
  ContextPool &pool = *existing_pool(*owner);
  const ContextPool::InFlight in_flight(pool);
  const std::optional<pool::Block> block = pool.blocks.find(address);
  const std::optional<pool::Slab> slab = block ? pool.blocks.slab_of(block->address) : std::nullopt;
  if (owner->ended_by.load() != nullptr || !slab || slab->id != block->slab) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  CUipcMemHandle of_slab{};
  if (const CUresult result = real.cuIpcGetMemHandle(&of_slab, slab->address); result != CUDA_SUCCESS) {
    return result;
  }
  ledger::ExportedBlock in;
  std::memcpy(in.handle, &of_slab, sizeof(in.handle));
  in.offset = block->address - slab->address;
  in.bytes = block->requested;
  in.slab_bytes = slab->bytes;
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
void BlockPools::reclaim_unshared(std::size_t most) noexcept {
  exports_.reconcile(most, [this](const IpcExporter::Kept &kept) {
    ContextPool &pool = *existing_pool(*kept.owner);
    const ContextPool::InFlight in_flight(pool);
    return kept.owner->ended_by.load() == nullptr &&
           state_of(kept.owner->device).quarantine.take_back(pool, kept.address, kept.bytes);
  });
}

}  // namespace ration::policy
