// The check of what a driver promises: one granule that is created, mapped, copied to and from, and unmapped. It is the
// first of the pool then.
// Layer: policy/block_pool. Threads: one, in the context of the pool.
#pragma once

#include <cstdint>
#include <string>

#include "policy/block_pool/block_pools.h"
#include "pool/stitch/stitcher.h"

namespace ration::policy {

class FirstGranule {
 public:
  enum class Result { works, fails, no_room };

  FirstGranule(BlockPools &pools, int device, const pool::stitch::Layout &layout)
      : pools_(pools), device_(device), layout_(layout) {}
  FirstGranule(const FirstGranule &) = delete;
  FirstGranule &operator=(const FirstGranule &) = delete;

  // Where it works, the granule is mapped at the start of the home range, and charged. Where it does not, or the
  // process shares a limit, it is gone; what the driver refuses to take back stays charged until it does. A driver that
  // refuses `kind` gets a plain one.
  Result make(GranuleKind &kind);
  // REQUIRES: it works. It is gone as above.
  void give_up();
  // 0: it is gone.
  std::uint64_t handle() const { return made_ ? handle_ : 0; }
  // What failed, in words.
  const std::string &reason() const { return reason_; }

 private:
  bool use(GranuleKind kind, CUresult &error);
  const char *create_and_map(GranuleKind kind, CUresult &error);
  const char *copy(CUresult &error);
  const char *unmap_alias(CUresult &error);
  // True: all of it is gone.
  bool undo();

  BlockPools &pools_;
  const int device_;
  const pool::stitch::Layout &layout_;
  CUmemGenericAllocationHandle handle_ = 0;
  bool made_ = false;
  bool mapped_ = false;
  bool aliased_ = false;
  bool is_left_ = false;  // something is the device's still, and charged
  std::string reason_;
};

}  // namespace ration::policy
