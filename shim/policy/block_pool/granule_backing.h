// Backs pools with granules, which are physical memory that is mapped where it is needed (pool/stitch). A granule
// without a block can go back to the driver on its own, even while the device is at work.
// Layer: policy/block_pool. Threads: any; no lock is held across a driver call.
#pragma once

#include "policy/block_pool/backing.h"
#include "policy/block_pool/granule_memory.h"
#include "policy/block_pool/slab_directory.h"

namespace ration::policy {

class GranuleBacking final : public Backing {
 public:
  GranuleBacking(const PoolParts &parts, DevicePools &pools, SlabDirectory &slabs, Publication &publication,
                 BackingKind asked)
      : parts_(parts),
        pools_(pools),
        slabs_(slabs),
        support_(parts.devices, parts.ledger, asked),
        log_(parts.journal, pools),
        unreturned_(parts.ledger),
        granule_parts_{parts.ledger, support_, log_, unreturned_, publication} {}

  // Turns an empty pool into one of granules, before its first request. False if granules were not asked for, if the
  // device has none, or if they would leave too much of its limit unused.
  bool open(const ContextRef &context, ContextPool &pool) noexcept;
  // The backing of a device's pools, according to its driver, and the reason for it.
  BackingKind backing_on(CUdevice handle, std::string &reason) { return support_.backing_on(handle, reason); }
  // Whether other processes can open blocks that lie in the granules of a device.
  bool can_share(int device) const { return support_.kind(device).exportable; }
  // Called when a context of `peer` may access the memory of `device`'s contexts from now on: access was enabled, or
  // the context makes copies.
  void peer_may_access(int device, int peer) noexcept;
  // Called for a pool that has just become visible. Gives access to peers that were added while the pool could not be
  // found.
  void let_late_peers_in(const Context &context, ContextPool &pool);

  Taken take(const PoolCall &call, const Wanted &wanted) override;
  bool give_back(const char *api, const ContextRef &context, const pool::Slab &granule) noexcept override;
  // Returns no memory of the pool that asks.
  Returned give_back_free(const Room::Need &need, const ContextRef &context, bool idle) noexcept override;
  std::uint64_t returnable(ContextPool &pool, bool asking) override;
  // Takes granules of the sizes that a preallocation is divided into. If the device has less memory, takes smaller
  // granules as long as it gets any.
  void preallocate(const PoolCall &call, std::uint64_t bytes, std::uint64_t least) override;
  CUresult locate(const ContextRef &owner, const pool::Block &block, ledger::ExportedBlock &in,
                  std::string &refused) override;
  void end(const char *api, const ContextRef &context, ContextPool &pool) noexcept override;
  std::unique_ptr<pool::stitch::DeviceMemory> memory(const char *api, const ContextRef &context) override;
  bool gives_parts() const override { return true; }

 private:
  std::optional<pool::stitch::Layout> reserve(int device, std::uint64_t total, std::uint64_t page_bytes);
  bool have_none(int device, const std::string &reason, bool is_said);
  CUresult create(int device, std::uint64_t bytes, std::uint64_t piece_bytes, std::vector<pool::Slab> &pieces);
  void note_all(const PoolCall &call, const char *why, std::uint64_t each_ns, std::vector<pool::Slab> &pieces);

  const PoolParts parts_;
  DevicePools &pools_;
  SlabDirectory &slabs_;
  GranuleSupport support_;
  GranuleLog log_;
  Unreturned unreturned_;
  const GranuleParts granule_parts_;
};

}  // namespace ration::policy
