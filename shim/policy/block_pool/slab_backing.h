// Backs pools with slabs, each of which is one driver allocation. A slab goes back as a whole, when it has no block and
// the device is idle.
// Layer: policy/block_pool. Threads: any; no lock is held across a driver call.
#pragma once

#include "policy/block_pool/backing.h"
#include "policy/block_pool/publication.h"
#include "policy/block_pool/slab_directory.h"

namespace ration::policy {

class SlabBacking final : public Backing {
 public:
  SlabBacking(const PoolParts &parts, DevicePools &pools, SlabDirectory &slabs, Publication &publication)
      : parts_(parts), pools_(pools), slabs_(slabs), publication_(publication) {}

  Taken take(const PoolCall &call, const Wanted &wanted) override;
  bool give_back(const char *api, const ContextRef &context, const pool::Slab &slab) noexcept override;
  // Returns all free slabs. If the pool that asks owns them, stops once a hole is large enough for the pool's block.
  Returned give_back_free(const Room::Need &need, const ContextRef &context, bool idle) noexcept override;
  std::uint64_t returnable(ContextPool &pool, bool asking) override;
  // Takes one slab. If the driver refuses that size, tries nine tenths of it, again and again.
  void preallocate(const PoolCall &call, std::uint64_t bytes, std::uint64_t least) override;
  CUresult locate(const ContextRef &owner, const pool::Block &block, ledger::ExportedBlock &in,
                  std::string &refused) override;
  void end(const char *api, const ContextRef &context, ContextPool &pool) noexcept override;
  std::unique_ptr<pool::stitch::DeviceMemory> memory(const char *, const ContextRef &) override { return nullptr; }
  bool gives_parts() const override { return false; }

  // Records that a slab is gone, and releases it.
  void forget(const char *api, const Context &context, const pool::Slab &slab) noexcept;

 private:
  const PoolParts parts_;
  DevicePools &pools_;
  SlabDirectory &slabs_;
  Publication &publication_;
};

}  // namespace ration::policy
