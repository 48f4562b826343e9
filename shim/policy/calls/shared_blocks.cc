#include "policy/calls/shared_blocks.h"

#include <bit>
#include <cstring>

#include "policy/calls/call_parts.h"

namespace ration::policy {

using driver::real;

void SharedBlocks::say_once(const std::string &line) {
  if (!said_.exchange(true)) {
    events::say(line);
  }
}

CUresult SharedBlocks::share(const char *api, CUipcMemHandle *handle, CUdeviceptr address, DriverCall call) {
  const ContextRef owner = parts_.pools.slabs.owner_of(address);
  if (owner == nullptr && parts_.async_memory.block_at(address)) {
    const CUresult result = call();
    if (result != CUDA_SUCCESS) {
      say_once("memory of mode async cannot be shared with other processes (RATION_IPC=direct: large blocks can)");
    }
    return result;
  }
  if (owner == nullptr) {
    return parts_.imports.covers(address) ? CUDA_ERROR_INVALID_VALUE : call();  // an imported block cannot be shared on
  }
  if (handle == nullptr) {
    return call();  // the driver's own refusal
  }
  if (const Contexts::Current where = parts_.contexts.current(); where.error != CUDA_SUCCESS) {
    return where.error;
  }
  std::string refused;
  const CUresult result = parts_.pools.sharing.share(address, owner, handle, refused);
  if (!refused.empty()) {
    const std::optional<pool::Block> block = policy::block_at(address, *owner);
    parts_.admission.record_oom(api, block ? block->requested : 0, 0, owner->device, events::Reason::pool_holds,
                                owner.get(), true);
    say_once("memory cannot be shared with other processes: " + refused);
  }
  return result;
}

// The process's own token goes to the driver as the handle that it stands for, and the driver refuses it.
CUresult SharedBlocks::open(const CUipcMemHandle &handle, IpcImporter::Open open, CUdeviceptr *address) {
  const auto token = std::bit_cast<ledger::ExportToken>(handle);
  if (token.magic != ledger::ExportToken::kMagic || address == nullptr) {
    return open(handle, address);
  }
  const Contexts::Current where = parts_.contexts.current();
  if (where.error != CUDA_SUCCESS) {
    return where.error;
  }
  if (!parts_.exports.is_own(token)) {
    return parts_.imports.open(token, where.context, open, address);
  }
  ledger::ExportedBlock block;
  if (!parts_.exports.find_own(token, block)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (block.kind == ledger::ExportKind::granules) {
    return CUDA_ERROR_INVALID_CONTEXT;  // as the driver would
  }
  CUipcMemHandle of_slab{};
  std::memcpy(&of_slab, block.handle, sizeof(of_slab));
  CUdeviceptr opened = 0;
  const CUresult result = open(of_slab, &opened);
  if (result == CUDA_SUCCESS && real.cuIpcCloseMemHandle.present()) {
    real.cuIpcCloseMemHandle(opened);
  }
  return result == CUDA_SUCCESS ? CUDA_ERROR_INVALID_CONTEXT : result;
}

CUresult SharedBlocks::close(CUdeviceptr address, DriverCall call) {
  if (!parts_.imports.covers(address)) {
    return call();
  }
  const Contexts::Current where = parts_.contexts.current();
  if (where.error != CUDA_SUCCESS) {
    return where.error;
  }
  bool handled = false;
  const CUresult result = parts_.imports.close(address, where.context, handled);
  return handled ? result : call();
}

}  // namespace ration::policy
