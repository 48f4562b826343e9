// The short way through BlockPools, and when it opens: the half of BlockPools that most calls see.
// Layer: policy.
#include "policy/block_pool/block_pools.h"

namespace ration::policy {

using driver::real;

FastPath *BlockPools::path_of_caller(CUcontext &current) {
  if (!fast_paths_.in_use() || real.cuCtxGetCurrent(&current) != CUDA_SUCCESS || current == nullptr) {
    return nullptr;
  }
  return fast_paths_.find(current);
}

// What is used is told in shared memory, so a call that would take it too far from what was told is no hit: here up.
bool BlockPools::has_growth_to_tell(const FastPath &path, std::uint64_t bytes) const {
  const int device = path.device();
  return device >= 0 && ledger_.account(device).exceeds_published(used(device) + bytes);
}

bool BlockPools::allocate_hit(std::uint64_t bytes, CUdeviceptr *address) noexcept {
  CUcontext current = nullptr;
  FastPath *path = path_of_caller(current);
  std::uint64_t block = 0;
  if (path == nullptr || has_growth_to_tell(*path, bytes) || !path->allocate(current, bytes, journal_, block)) {
    return false;
  }
  *address = block;
  return true;
}

// And down. How large the block is only the pool knows.
std::uint64_t BlockPools::most_to_free_untold(const FastPath &path) const {
  const int device = path.device();
  return device >= 0 ? ledger_.account(device).max_unpublished_fall(used(device)) : UINT64_MAX;
}

// A context that a fast path is open for is one that lives: such a thread may free, and what starts in that context's
// pool is in nobody else's slab.
bool BlockPools::free_hit(std::uint64_t address) noexcept {
  CUcontext current = nullptr;
  FastPath *path = path_of_caller(current);
  int device = 0;
  const FastPath::Freed freed = path != nullptr
                                    ? path->free(current, address, journal_, most_to_free_untold(*path), device)
                                    : FastPath::Freed::no;
  if (freed == FastPath::Freed::due) {
    known_state(device)->quarantine.collect_due();
  }
  return freed != FastPath::Freed::no;
}

// Also for a pool that will serve no hits: a lock that is as old as the runtime, rather than as the pool, needs no
// other proof that it was made before it is taken (ThreadSanitizer in the program sees no atomics of ours).
FastPaths::Claim BlockPools::claim_path(const Context &context) {
  return {fast_paths_, context.handle, context.device};
}

// At the end of every allocation that took the long way. With a log, or frees that wait, every call has more to do than
// a fast path knows of.
void BlockPools::open_path(ContextPool &pool, const DevicePoolState &state) noexcept {
  FastPath *path = pool.claim.path();
  if (path == nullptr || path->serves(pool.context.handle) || journal_.logging() || synchronous_free_) {
    return;
  }
  fast_paths_.note_use();
  path->open(pool, pool.context.handle,
             [&] { return pool.context.may_be_hit() && state.preallocation.load() == DevicePoolState::done; });
}

}  // namespace ration::policy
