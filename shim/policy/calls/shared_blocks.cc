// Blocks that processes share: the part of Policy that makes and opens their handles. Layer: policy.
#include <bit>
#include <cstring>

#include "events/diagnostics.h"
#include "policy/calls/policy.h"

namespace ration::policy {

using driver::real;

CUresult Policy::share(const char *api, CUipcMemHandle *handle, CUdeviceptr address,
                       const std::function<CUresult()> &act) {
  describe();
  const ContextRef owner = pools_.owner_of(address);
  if (owner == nullptr && async_block_at(address)) {
    const CUresult result = act();
    if (result != CUDA_SUCCESS && !said_no_sharing_.exchange(true)) {
      events::say("memory of mode async cannot be shared with other processes (RATION_IPC=direct: large blocks can)");
    }
    return result;
  }
  if (owner == nullptr) {
    return imports_.covers(address) ? CUDA_ERROR_INVALID_VALUE : act();  // what others lent is not ours to lend
  }
  if (handle == nullptr) {
    return act();  // the driver's own refusal
  }
  std::string refused;
  const CUresult result = pools_.share(address, owner, handle, refused);
  if (!refused.empty()) {
    const std::optional<pool::Block> block = pools_.block_at(address, owner);
    record_oom(api, block ? block->requested : 0, owner->device, events::Reason::pool_holds, owner.get(), true);
    if (!said_no_sharing_.exchange(true)) {
      events::say("memory cannot be shared with other processes: " + refused);
    }
  }
  return result;
}

// Its own token a process hands to the driver as what it stands for, and the driver refuses it.
CUresult Policy::open_shared(const CUipcMemHandle &handle, const IpcImporter::Open &act, CUdeviceptr *address) {
  describe();
  const auto token = std::bit_cast<ledger::ExportToken>(handle);
  if (token.magic != ledger::ExportToken::kMagic || address == nullptr) {
    return act(handle, address);
  }
  const Contexts::Current where = contexts_.current();
  if (where.error != CUDA_SUCCESS) {
    return where.error;
  }
  if (!pools_.exports().is_own(token)) {
    return imports_.open(token, where.context, act, address);
  }
  ledger::ExportedBlock block;
  if (!pools_.exports().find_own(token, block)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  CUipcMemHandle of_slab{};
  std::memcpy(&of_slab, block.handle, sizeof(of_slab));
  CUdeviceptr opened = 0;
  const CUresult result = act(of_slab, &opened);
  if (result == CUDA_SUCCESS && real.cuIpcCloseMemHandle.present()) {
    real.cuIpcCloseMemHandle(opened);
  }
  return result == CUDA_SUCCESS ? CUDA_ERROR_INVALID_CONTEXT : result;
}

CUresult Policy::close_shared(CUdeviceptr address, const std::function<CUresult()> &act) {
  describe();
  if (!imports_.covers(address)) {
    return act();
  }
  const Contexts::Current where = contexts_.current();
  if (where.error != CUDA_SUCCESS) {
    return where.error;
  }
  bool handled = false;
  const CUresult result = imports_.close(address, where.context, handled);
  return handled ? result : act();
}

}  // namespace ration::policy
