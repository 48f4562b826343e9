// Mode pool: serves the program's allocations from pools, one for each context life. README.md walks through a hit, a
// miss and a free.
// Layer: policy/block_pool. Threads: any; no lock is held across a driver call. Owns: each device's quarantine.
#pragma once

#include <cstdint>
#include <optional>

#include "policy/block_pool/fast_path.h"
#include "policy/block_pool/gifts.h"
#include "policy/block_pool/granule_backing.h"
#include "policy/block_pool/growth.h"
#include "policy/block_pool/preallocation.h"
#include "policy/block_pool/publication.h"
#include "policy/block_pool/returning.h"
#include "policy/block_pool/sharing.h"
#include "policy/block_pool/slab_backing.h"
#include "policy/block_pool/slab_directory.h"
#include "policy/block_pool/slab_merger.h"

namespace ration::policy {

struct BlockPoolOptions {
  bool no_fast_path = false;  // every call has work that the fast path does not do
  bool synchronous_free = false;
  BackingKind backing = BackingKind::slab;
};

class BlockPools {
 public:
  BlockPools(const PoolParts &parts, IpcExporter &exports, Room &room, const BlockPoolOptions &options);
  BlockPools(const BlockPools &) = delete;
  BlockPools &operator=(const BlockPools &) = delete;

  // Allocates a block of `request.upper_bound` bytes. If there is no memory for it, `denied` gets the reason.
  CUresult allocate(const Request &request, const Contexts::Current &where, events::Via via, CUdeviceptr *address,
                    std::optional<events::Reason> &denied);
  // REQUIRES: slabs.owner_of() returned `owner`. Returns INVALID_VALUE unless a live block starts at `address`.
  CUresult free(const char *api, std::uint64_t address, const ContextRef &owner);
  // Design: design/quarantine.md#stream-ordered-frees
  CUresult free_in_stream(const char *api, std::uint64_t address, CUstream stream, const ContextRef &owner);
  // Fills in what an oom record says about the pools. `of`: the requesting context.
  void explain(events::Oom &oom, const Context *of);

  // A context's pool ends with it. Call begin_end() before the driver's call, then cancel_end() or finish_end().
  void begin_end(const ContextRef &context) noexcept;
  void cancel_end(const ContextRef &context) noexcept { slabs.cancel_end(context); }
  void finish_end(const char *api, const ContextRef &context) noexcept;

 private:
  const PoolParts parts_;
  IpcExporter &exports_;
  const bool synchronous_free_;
  SlabBacking slab_backing_;  // must exist for as long as the pools that are made of slabs

 public:
  // The parts that other classes call directly.
  DevicePools devices;
  SlabDirectory slabs;
  Publication publication;
  GranuleBacking granules;
  Sharing sharing;
  Returning returning;
  Gifts gifts;
  FastPath fast_path;

 private:
  // The pool of a context. The first request creates it, with the backing that the device allows. Throws bad_alloc.
  ContextPool &pool_of(const ContextRef &context);
  CUresult serve(const PoolCall &call, pool::Block &block, std::optional<events::Reason> &denied);
  CUresult retire(const char *api, std::uint64_t address, std::optional<CUstream> stream, const ContextRef &owner,
                  std::uint64_t &bytes);

  SlabMerger merger_;
  Preallocator preallocator_;
  const GrowthParts growth_parts_;
};

}  // namespace ration::policy
