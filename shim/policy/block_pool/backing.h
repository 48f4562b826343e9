// The memory that a pool is made of: pieces, which are either driver allocations (slab_backing.h) or granules of
// physical memory, mapped where they are needed (granule_backing.h). BlockPools::pool_of() chooses once for each pool.
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

// A request of the program, and the pool that serves it.
struct PoolCall {
  const Request &request;
  const Contexts::Current &where;
  ContextPool &pool;
  DevicePool &device;
};

struct Wanted {
  std::uint64_t bytes;
  ledger::Effort effort;
  const char *why;                         // the reason that the log gives
  std::uint64_t piece_bytes = UINT64_MAX;  // the largest piece, unless the bytes are available only in one piece
};

struct Taken {
  TakeOutcome outcome;
  std::vector<pool::Slab> pieces{};
  CUresult error = CUDA_SUCCESS;  // the driver's error if the outcome is `failed`
};

struct Returned {
  std::uint64_t slabs = 0;
  std::uint64_t granules = 0;
  std::uint64_t bytes = 0;
};

class Backing {
 public:
  // Takes `wanted.bytes` from the device of the current context, all of them or none, and reserves and records them.
  // The result is one piece if memory() is null. Throws bad_alloc.
  virtual Taken take(const PoolCall &call, const Wanted &wanted) = 0;
  // Returns a piece to the driver. Returns false if the driver refused.
  virtual bool give_back(const char *api, const ContextRef &context, const pool::Slab &piece) noexcept = 0;
  // Gives memory in which no block of the pool lies back to the driver: `need.bytes` or, if there is less, all of it.
  // `idle`: the device is idle.
  virtual Returned give_back_free(const Room::Need &need, const ContextRef &context, bool idle) noexcept = 0;
  // The most bytes that give_back_free() could return once all retired blocks are clean. `asking`: the request comes
  // from this pool.
  virtual std::uint64_t returnable(ContextPool &pool, bool asking) = 0;
  // Adds `bytes` to a pool, or fewer if the device has fewer. A slab has at least `least` bytes. Throws bad_alloc.
  virtual void preallocate(const PoolCall &call, std::uint64_t bytes, std::uint64_t least) = 0;
  // Writes into `in` where other processes can find a block. If they cannot find it, `refused` gets the reason.
  virtual CUresult locate(const ContextRef &owner, const pool::Block &block, ledger::ExportedBlock &in,
                          std::string &refused) = 0;
  // Gives up all memory of a pool whose context has ended and which has no live block.
  virtual void end(const char *api, const ContextRef &context, ContextPool &pool) noexcept = 0;
  // The driver calls by which a pool of granules carries out its plans (pool/stitch); nullptr for slabs. Throws
  // bad_alloc.
  virtual std::unique_ptr<pool::stitch::DeviceMemory> memory(const char *api, const ContextRef &context) = 0;
  // Whether free parts of a piece of memory can go back to the driver while blocks next to them are live.
  virtual bool gives_parts() const = 0;

 protected:
  ~Backing() = default;
};

}  // namespace ration::policy
