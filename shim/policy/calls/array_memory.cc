#include "policy/calls/array_memory.h"

#include <optional>

#include "policy/calls/call_parts.h"

namespace ration::policy {

CUresult ArrayMemory::create(Request request, const ArrayShape &shape, Act act, Undo undo, CUdeviceptr *handle) {
  request.kind = events::Kind::array;
  request.requested = request.upper_bound = shape.bound();
  if (parts_.devices.limit_unknown()) {
    return Admission::refuse_as_driver(act, undo);
  }
  const Contexts::Current where = parts_.admission.current();
  ledger::Account &account = parts_.account(where.device);
  // Perhaps only the bound does not fit: then a probe finds out how to ask the driver for the cost. Otherwise the
  // program's own array shows that.
  Request least = request;
  least.upper_bound = shape.least();
  if (where.error == CUDA_SUCCESS && costs_.is_to_learn() && !parts_.admission.has_room(request, where) &&
      parts_.admission.has_room(least, where)) {
    ledger::Transit transit(account.transits());
    if (account.reserve(ArrayCosts::kProbeBytes) == ledger::ReserveOutcome::granted) {
      transit.hold();
      costs_.probe(where);
      account.release(ArrayCosts::kProbeBytes);
    }
  }
  std::optional<std::uint64_t> bytes = where.error == CUDA_SUCCESS ? costs_.of(where, shape) : std::nullopt;
  request.requested = request.upper_bound = bytes.value_or(request.upper_bound);
  request.exact = bytes.has_value();
  request.invalid = request.invalid || (where.error == CUDA_SUCCESS && !parts_.admission.has_room(request, where) &&
                                        costs_.is_impossible(where, shape));
  const auto act_and_ask = [&](Obtained &obtained) {
    const CUresult result = act(obtained);
    if (result == CUDA_SUCCESS) {
      bytes = bytes.has_value() ? bytes : costs_.of(where, shape, obtained.address);
      obtained.bytes = bytes.value_or(request.upper_bound);
      parts_.mapped_memory.array_made(request.api, obtained.address,
                                      (shape.descriptor.Flags & CUDA_ARRAY3D_DEFERRED_MAPPING) != 0);
    }
    return result;
  };
  return parts_.admission.refuses_on_purpose(request, where)
             ? CUDA_ERROR_OUT_OF_MEMORY
             : parts_.admission.obtain(parts_.books.arrays, request, where, act_and_ask, undo, handle);
}

CUresult ArrayMemory::destroy(const char *api, std::uint64_t handle, DriverCall call) {
  const CUresult result = parts_.books.end(parts_.books.arrays, api, handle, [&](const Block *block) {
    // The driver waits for running work in this call anyway.
    if (block != nullptr && costs_.keeps_any() && parts_.admission.current().context == block->context) {
      costs_.destroy_queried(*block->context);
    }
    return call();
  });
  if (result == CUDA_SUCCESS) {
    parts_.mapped_memory.array_gone(api, handle);
  }
  return result;
}

}  // namespace ration::policy
