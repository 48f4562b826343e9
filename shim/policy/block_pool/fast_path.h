// The most frequent calls: an allocation that finds a hole, and a free. Each takes one critical section of the
// context's pool. Such a call (a hit) touches only the totals and the data under that lock, and asks the driver for the
// current context only. With a log, its record follows. A call whose change must be published in the ledger is no hit.
// Layer: policy/block_pool. Threads: any.
// Design: design/fast-path.md#one-critical-section
#pragma once

#include <cstdint>

#include "policy/block_pool/device_pool.h"
#include "policy/block_pool/returning.h"
#include "policy/devices/request.h"

namespace ration::policy {

// Each function is one critical section, for a thread whose current context is `handle`. If it returns false, or
// Freed::no, it changed nothing.
namespace hit {

bool allocate(ContextPool &pool, CUcontext handle, std::uint64_t bytes, events::Journal &journal,
              std::uint64_t &address) noexcept;
// Does not free a block of more than `most` bytes.
Freed free(ContextPool &pool, CUcontext handle, std::uint64_t address, events::Journal &journal,
           std::uint64_t most) noexcept;
// For use with a log: the first two functions fill in what the pool knows of `event`. The caller writes the record,
// which changes the totals, and then passes a freed block to keep(). GUARANTEES: if they return true, the call is in
// flight until ContextPool::land().
// Design: design/fast-path.md#hits-with-a-log
bool allocate_unrecorded(ContextPool &pool, CUcontext handle, std::uint64_t bytes, events::Alloc &event) noexcept;
bool retire_unrecorded(ContextPool &pool, CUcontext handle, std::uint64_t most, events::Free &event) noexcept;
Freed keep(ContextPool &pool, const events::Free &event) noexcept;

}  // namespace hit

class FastPath {
 public:
  // `never_opens`: every call has work to do that a hit does not do.
  FastPath(const PoolParts &parts, DevicePools &pools, Returning &returning, bool never_opens)
      : parts_(parts), pools_(pools), returning_(returning), never_opens_(never_opens) {}

  // If this returns false, nothing was changed and the caller takes the slow path.
  bool allocate_hit(std::uint64_t bytes, CUdeviceptr *address) noexcept;
  // If the free is due (Freed::due), also lets the quarantine gather what is kept.
  bool free_hit(std::uint64_t address) noexcept;
  // The same two calls with a log, to be used only if records_hits().
  bool records_hits() const { return parts_.context_pools.in_recorded_use(); }
  bool allocate_hit(const Request &request, events::Via via, CUdeviceptr *address) noexcept;
  bool free_hit(const char *api, std::uint64_t address) noexcept;

  // Opens the fast path if nothing forbids that. Called at the end of every allocation on the slow path.
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
