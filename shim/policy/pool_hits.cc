// The short way through Pools, and when it opens: the half of Pools that most calls see.
// Layer: policy.
#include "policy/pools.h"

namespace ration::policy {

using driver::real;

HitLane *Pools::lane_of_caller(CUcontext &current) {
  if (!lanes_.in_use() || real.cuCtxGetCurrent(&current) != CUDA_SUCCESS || current == nullptr) {
    return nullptr;
  }
  return lanes_.find(current);
}

// What is used is told in shared memory, so a call that would take it too far from what was told is no hit: here up.
bool Pools::has_growth_to_tell(const HitLane &lane, std::uint64_t bytes) const {
  const int device = lane.device();
  return device >= 0 && ledger_.account(device).has_outgrown(used(device) + bytes);
}

bool Pools::allocate_hit(std::uint64_t bytes, CUdeviceptr *address) noexcept {
  CUcontext current = nullptr;
  HitLane *lane = lane_of_caller(current);
  std::uint64_t block = 0;
  if (lane == nullptr || has_growth_to_tell(*lane, bytes) || !lane->allocate(current, bytes, journal_, block)) {
    return false;
  }
  *address = block;
  return true;
}

// And down. How large the block is only the pool knows.
std::uint64_t Pools::most_to_free_untold(const HitLane &lane) const {
  const int device = lane.device();
  return device >= 0 ? ledger_.account(device).most_untold_fall(used(device)) : UINT64_MAX;
}

// A context that a lane is open for is one that lives: such a thread may free, and what starts in that context's pool
// is in nobody else's slab.
bool Pools::free_hit(std::uint64_t address) noexcept {
  CUcontext current = nullptr;
  HitLane *lane = lane_of_caller(current);
  int device = 0;
  const HitLane::Freed freed =
      lane != nullptr ? lane->free(current, address, journal_, most_to_free_untold(*lane), device) : HitLane::Freed::no;
  if (freed == HitLane::Freed::due) {
    Quarantine &quarantine = known_arena(device)->quarantine;
    if (quarantine.take_in()) {
      quarantine.collect(Quarantine::Sealing::always);  // an error of it is for whoever needs the memory
    }
  }
  return freed != HitLane::Freed::no;
}

// Also for a pool that will serve no hits: a lock that is as old as the runtime, rather than as the pool, needs no
// other proof that it was made before it is taken (ThreadSanitizer in the program sees no atomics of ours).
HitLanes::Claim Pools::claim_lane(const Context &context) {
  return {lanes_, context.handle, context.device};
}

// At the end of every allocation that took the long way. With a log, or frees that wait, every call has more to do than
// a lane knows of.
void Pools::open_lane(ContextPool &pool, const Arena &arena) noexcept {
  HitLane *lane = pool.claim.lane();
  if (lane == nullptr || lane->serves(pool.context.handle) || journal_.logging() || synchronous_free_) {
    return;
  }
  lanes_.note_use();
  lane->open(pool, pool.context.handle,
             [&] { return pool.context.may_be_hit() && arena.preallocation.load() == Arena::done; });
}

}  // namespace ration::policy
