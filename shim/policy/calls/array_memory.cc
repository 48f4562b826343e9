// CUDA arrays, which have a handle and no address: the half of Policy behind cuArrayCreate and its kin.
// Layer: policy.
#include <optional>

#include "policy/calls/policy.h"

namespace ration::policy {

CUresult Policy::create_array(Request request, const ArrayShape &shape, const Act &act, const Undo &undo,
                              CUdeviceptr *handle) {
  describe();
  request.requested = request.upper_bound = shape.bound();
  if (devices_.limit_unknown()) {
    return refuse_unknown(act, undo);
  }
  const Contexts::Current where = contexts_.current();
  devices_.learn_total(where.device);
  ledger::Account &account = ledger_.account(where.device);
  // The bound may be what does not fit. Else the program's own array tells how the driver is to be asked.
  if (where.error == CUDA_SUCCESS && request.upper_bound > account.available() && array_costs_.is_to_learn() &&
      account.reserve(ArrayCosts::kProbeBytes) == ledger::ReserveOutcome::granted) {
    array_costs_.probe();
    account.release(ArrayCosts::kProbeBytes);
  }
  std::optional<std::uint64_t> bytes =
      where.error == CUDA_SUCCESS ? array_costs_.of(where.device, shape) : std::nullopt;
  request.requested = request.upper_bound = bytes.value_or(request.upper_bound);
  const Act act_and_ask = [&](Obtained &obtained) {
    const CUresult result = act(obtained);
    if (result == CUDA_SUCCESS) {
      bytes = bytes.has_value() ? bytes : array_costs_.of(where.device, shape, obtained.address);
      obtained.bytes = bytes.value_or(request.upper_bound);
      end_mappings(request.api, obtained.address);  // of one that went without our seeing it
      if ((shape.descriptor.Flags & CUDA_ARRAY3D_DEFERRED_MAPPING) != 0) {
        physical_.deferred_made(obtained.address);
      }
    }
    return result;
  };
  return obtain(arrays_, request, where, act_and_ask, undo, handle);
}

CUresult Policy::destroy_array(const char *api, std::uint64_t handle, const std::function<CUresult()> &act) {
  describe();
  const CUresult result = end_with(arrays_, api, handle, act);
  if (result == CUDA_SUCCESS) {
    end_mappings(api, handle);
  }
  return result;
}

}  // namespace ration::policy
