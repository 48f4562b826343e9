// What pools are made of: pieces of a device's memory, which are the driver's allocations (slab_backing.h) or granules
// of physical memory, mapped where they are needed (granule_backing.h). BlockPools::pool_of() decides once for a pool.
// Layer: policy/block_pool. Threads: any; no lock is held across a driver call.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "ledger/export_file.h"
#include "policy/block_pool/device_pool.h"
#include "policy/block_pool/room.h"
#include "policy/devices/request.h"
#include "pool/stitch/device_memory.h"

namespace ration::policy {

// A request of the program's, and the pool that serves it.
struct PoolCall {
  const Request &request;
  const Contexts::Current &where;
  ContextPool &pool;
  DevicePool &device;
};

struct Wanted {
  std::uint64_t bytes;
  ledger::Effort effort;
  const char *why;                         // in the log
  std::uint64_t piece_bytes = UINT64_MAX;  // no piece is larger, unless the device has the bytes in one piece only
};

struct Taken {
  TakeOutcome outcome;
  std::vector<pool::Slab> pieces{};
  CUresult error = CUDA_SUCCESS;  // of `failed`
};

struct Returned {
  std::uint64_t slabs = 0;
  std::uint64_t granules = 0;
  std::uint64_t bytes = 0;
};

class Backing {
 public:
  // Takes `wanted` from the device of the current context, reserved and recorded, all or nothing; in one piece where
  // memory() is null. Throws bad_alloc.
  virtual Taken take(const PoolCall &call, const Wanted &wanted) = 0;
  // Returns a piece to the driver. False: the driver refused.
  virtual bool give_back(const char *api, const ContextRef &context, const pool::Slab &piece) noexcept = 0;
  // Returns what no block of the pool is in, `need.bytes` of it or all; `idle`: the device is.
  virtual Returned give_back_free(const Room::Need &need, const ContextRef &context, bool idle) noexcept = 0;
  // At most so many bytes would give_back_free() return once all that is retired is clean.
  virtual std::uint64_t returnable(ContextPool &pool, bool asking) = 0;
  // Adds so many bytes to a pool, or fewer, but `least`, where the device has fewer. Throws bad_alloc.
  virtual void preallocate(const PoolCall &call, std::uint64_t bytes, std::uint64_t least) = 0;
  // Where other processes find a block. `refused`: why they cannot, in words.
  virtual CUresult locate(const ContextRef &owner, const pool::Block &block, ledger::ExportedBlock &in,
                          std::string &refused) = 0;
  // The context has ended, and no block of its pool lives.
  virtual void end(const char *api, const ContextRef &context, ContextPool &pool) noexcept = 0;
  // The driver's calls for plans of a pool that stitches; else nullptr. Throws bad_alloc.
  virtual std::unique_ptr<pool::stitch::DeviceMemory> memory(const char *api, const ContextRef &context) = 0;
  // Whether what is free goes back to others while blocks live beside it.
  virtual bool gives_parts() const = 0;

 protected:
  ~Backing() = default;
};

}  // namespace ration::policy
