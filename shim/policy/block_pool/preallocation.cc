#include "policy/block_pool/preallocation.h"

#include <algorithm>

#include "base/saturating.h"
#include "events/diagnostics.h"

namespace ration::policy {

// Only a device's first context preallocates, and only its own live blocks count for that.
void Preallocator::prepare(const PoolCall &call) {
  PreallocationTurn &turn = call.device.turn;
  if (turn.is_done() || !turn.is_of(call.where.context.get()) ||
      call.pool.blocks.statistics().used_bytes + call.request.upper_bound < call.device.bounds.plan.after) {
    return;
  }
  if (turn.begin()) {
    devices_.heed(call.device.device);
    try {
      preallocate(call);
    } catch (...) {  // no memory of the host: the pool grows on demand
    }
    turn.end();
    events::explain(events::Level::info, "device ", call.device.device, ": preallocated: the pool holds ",
                    call.device.held_bytes(), " bytes; ", call.device.bounds.plan.bytes, " were planned, with ",
                    call.device.bounds.plan.headroom, " left free on the device");
  }
  turn.wait_while_running();  // another thread preallocates; its memory serves this request, too
}

// Takes the plan's bytes less what is held already. If not even this request would fit, takes nothing, and the pool
// grows for the request as for any other.
void Preallocator::preallocate(const PoolCall &call) {
  const Preallocation &plan = call.device.bounds.plan;
  ledger::Account &account = call.device.account;
  if (account.available() < minus_or_zero(plan.bytes, account.charged())) {
    account.reclaim_from_dead();
  }
  if (call.device.held_bytes() > 0) {
    call.device.drain_briefly(call.request.api, kBrieflyNs);
  }
  // Free memory goes back first: small free slabs would only fragment the device, and what the driver's pools keep
  // would be missing from the one large piece. Granules do not fragment it, so this pool keeps its own.
  const bool in_parts = call.pool.backing->gives_parts();
  room_.give_back({call.request.api, call.device.device, 0, in_parts ? &call.pool : nullptr}, Room::Patience::none);
  const RelaxedCapture relaxed;
  const std::uint64_t least = std::max(
      pool::Pool::slab_bytes_for(std::min(call.request.upper_bound, pool::SharedPool::kMostBytes)), kFirstSlabBytes);
  const std::uint64_t most = plan.fair ? std::min(plan.bytes, account.fair_part(in_parts)) : plan.bytes;
  const std::uint64_t bytes = std::min(
      {minus_or_zero(most, account.charged()), account.available(), call.device.bounds.free_beyond_headroom()});
  if (whole_units(bytes) >= least) {
    call.pool.backing->preallocate(call, bytes, least);
  }
}

}  // namespace ration::policy
