// Keeps the attribute SYNC_MEMOPS of single blocks (cuda.h: synchronous copies and fills of the memory always wait
// until they are done). The driver keeps it for a whole slab once a block there asks for it, so calls on other blocks
// may wait needlessly. The driver does not support it for granules (NOT_SUPPORTED), so Ration itself waits after the
// call.
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

  // Whether the attribute of the block around the address is kept here, because the driver cannot keep it.
  bool is_kept_here(CUdeviceptr address);
  // Returns false if the address is in no live block of a pool and in no imported block.
  bool mark(CUdeviceptr address, bool marked);
  // nullopt if the address is in no such block.
  std::optional<bool> is_marked(CUdeviceptr address);

  // Whether any block was ever marked without the driver's knowledge. Costs one load: every call that uses memory asks.
  bool keeps_any() const noexcept { return keeps_any_.load(std::memory_order_relaxed); }
  // Waits for the work that a synchronous call has just submitted to a default stream; returns that call's answer.
  static CUresult wait(CUstream stream);

 private:
  const CallParts &parts_;
  // Relaxed, because a thread that must wait for a block was told of the mark by the thread that set it.
  std::atomic<bool> keeps_any_{false};
};

}  // namespace ration::policy
