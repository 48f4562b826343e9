// The calls that most programs make most: an allocation that finds a hole, and a free, in one critical section of the
// context's pool. A hit touches only what that lock guards and the totals, and asks the driver only for the current
// context; with a log its record follows. A call whose change must be published in the ledger is no hit.
// Layer: policy/block_pool. Threads: any.
// Design: design/fast-path.md#one-critical-section
#pragma once

#include <cstdint>

#include "policy/block_pool/device_pool.h"
#include "policy/block_pool/returning.h"
#include "policy/devices/request.h"

namespace ration::policy {

// One critical section each, for a thread whose current context is `handle`. Nothing happens where they answer false,
// or Freed::no.
namespace hit {

bool allocate(ContextPool &pool, CUcontext handle, std::uint64_t bytes, events::Journal &journal,
              std::uint64_t &address) noexcept;
// A block of more than `most` bytes is not freed here.
Freed free(ContextPool &pool, CUcontext handle, std::uint64_t address, events::Journal &journal,
           std::uint64_t most) noexcept;
// With a log: the caller writes `event`, in which these fill in what the pool knows, and keeps what it freed after
// that. The totals change with the record. GUARANTEES: where true, the call is in flight until ContextPool::land().
// Design: design/fast-path.md#hits-with-a-log
bool allocate_unrecorded(ContextPool &pool, CUcontext handle, std::uint64_t bytes, events::Alloc &event) noexcept;
bool retire_unrecorded(ContextPool &pool, CUcontext handle, std::uint64_t most, events::Free &event) noexcept;
Freed keep(ContextPool &pool, const events::Free &event) noexcept;

}  // namespace hit

class FastPath {
 public:
  // `never_opens`: every call has more to do than a hit does.
  FastPath(const PoolParts &parts, DevicePools &pools, Returning &returning, bool never_opens)
      : parts_(parts), pools_(pools), returning_(returning), never_opens_(never_opens) {}

  // False: nothing happened; take the slow path.
  bool allocate_hit(std::uint64_t bytes, CUdeviceptr *address) noexcept;
  // A due free runs the quarantine, too.
  bool free_hit(std::uint64_t address) noexcept;
  // The same with a log; only where records_hits().
  bool records_hits() const { return parts_.context_pools.in_recorded_use(); }
  bool allocate_hit(const Request &request, events::Via via, CUdeviceptr *address) noexcept;
  bool free_hit(const char *api, std::uint64_t address) noexcept;

  // At the end of every allocation on the slow path.
  void open(ContextPool &pool, const DevicePool &device) noexcept;

 private:
  ContextPool *pool_of_caller(CUcontext &current);
  ContextPool *pool_for(std::uint64_t bytes, CUcontext &current);
  std::uint64_t most_to_free_unpublished(const ContextPool &pool) const;
  void finish_free(const char *api, CUcontext current, const Freed &freed) noexcept;
  void clean_after(const char *api, CUcontext current, const Freed &freed) noexcept;

  const PoolParts parts_;
  DevicePools &pools_;
  Returning &returning_;
  const bool never_opens_;
};

}  // namespace ration::policy
