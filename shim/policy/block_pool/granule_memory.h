// The driver's side of pools of granules: physical memory, which is charged, and its places in reserved addresses.
// Layer: policy/block_pool. Threads: an object lives on the stack of one call; the static functions: any.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "policy/block_pool/block_pools.h"
#include "pool/stitch/device_memory.h"
#include "pool/stitch/stitcher.h"

namespace ration::policy {

class GranuleMemory final : public pool::stitch::DeviceMemory {
 public:
  GranuleMemory(BlockPools &pools, const char *api, const ContextRef &context)
      : pools_(pools), api_(api), context_(context), change_(pools.ledger_.account(context->device).changes()) {
    pools.unreturned_.retry();
  }
  // Gives back what the end of the last plan left reserved.
  ~GranuleMemory() override { release_rest(); }

  std::optional<std::uint64_t> create(std::uint64_t bytes) noexcept override;
  // What it held stays reserved until release_rest(), for the parts of a handle that is divided.
  void release(std::uint64_t handle, std::uint64_t bytes) noexcept override;
  bool map(pool::Address address, std::uint64_t handle, std::uint64_t bytes) noexcept override;
  bool allow(pool::Address address, std::uint64_t bytes) noexcept override;
  bool unmap(pool::Address address, std::uint64_t bytes) noexcept override;
  void release_rest() noexcept override;
  // A mapping that the driver has not undone. The memory under it is the device's still: as much of what was released
  // stays charged.
  void leave_mapped(std::uint64_t address, std::uint64_t bytes) noexcept;
  // Handles.
  std::uint64_t released() const { return released_; }

  // What a device's driver says of granules; asks, and takes nothing.
  struct Support {
    std::uint64_t page_bytes = 0;  // 0: it has none
    GranuleKind kind{};
    std::string reason;  // in words, either way
  };
  static Support support_on(CUdevice device);
  // Reserves addresses for a pool of at most `bytes`; nullopt: the driver has none.
  static std::optional<pool::stitch::Layout> reserve(std::uint64_t page_bytes, std::uint64_t bytes, std::uint64_t slab);
  static void give_up(const pool::stitch::Layout &layout) noexcept;
  static CUresult create_handle(CUdevice device, std::uint64_t bytes, GranuleKind kind,
                                CUmemGenericAllocationHandle &handle);

 private:
  BlockPools &pools_;
  const char *const api_;
  const ContextRef &context_;
  const ledger::Change change_;  // what was released is charged until release_rest()
  std::uint64_t reserved_ = 0;   // that no handle has
  std::uint64_t released_ = 0;
};

}  // namespace ration::policy
