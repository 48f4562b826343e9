// SYNC_MEMOPS of single blocks (cuda.h: synchronous copies and fills of the memory always wait until they are done).
// The driver knows it of a whole slab, which has it from the first block on that asks for it: calls on other blocks may
// wait where they need not. Of granules it knows nothing (NOT_SUPPORTED), so there a call waits here, once it returns.
// Layer: policy/calls. Threads: any; no lock is held across a driver call.
// Design: design/granules.md#sync_memops
#pragma once

#include <atomic>
#include <optional>

#include "driver/abi.h"

namespace ration::policy {

struct CallParts;

class SyncMemops {
 public:
  explicit SyncMemops(const CallParts &parts) : parts_(parts) {}

  // Whether the driver cannot keep it for the block around the address, and it is kept here.
  bool is_kept_here(CUdeviceptr address);
  // False: the address is in no live block of a pool, and in no imported one.
  bool mark(CUdeviceptr address, bool marked);
  // nullopt: likewise.
  std::optional<bool> is_marked(CUdeviceptr address);

  // Whether a block was ever marked that only this class keeps it for: a load, for calls that touch any memory.
  bool keeps_any() const noexcept { return keeps_any_.load(std::memory_order_relaxed); }
  // Waits for the work that a synchronous call has just submitted to a default stream. The answer is that call's, then.
  static CUresult wait(CUstream stream);

 private:
  const CallParts &parts_;
  // Relaxed: a thread that must wait for a block was told of its mark by the thread that set it.
  std::atomic<bool> keeps_any_{false};
};

}  // namespace ration::policy
