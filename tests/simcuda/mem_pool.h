// Memory pools: device memory reserved for stream-ordered allocations, and the rules for its reuse and release. A pool
// belongs to its device, whatever happens to contexts. Layer: chunk.h, driver.h.
// Threads: under Driver::mutex. Owns: its chunks; a destroyed pool lives until its last block has been freed.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "tests/simcuda/chunk.h"
#include "tests/simcuda/driver.h"

namespace simcuda {

inline constexpr std::uint64_t kPoolStepBytes = std::uint64_t{32} << 20;  // a pool grows by multiples of it

// The owner of an imported pool, and the file with its bytes.
struct PoolOrigin {
  std::int32_t process = 0;
  std::int32_t descriptor = -1;
  std::uint64_t inode = 0;
  std::uint64_t id = 0;
  bool operator==(const PoolOrigin &) const = default;
};

struct MemPool {
  std::uint64_t id = 0;
  Device *device = nullptr;
  bool is_default = false;
  bool destroyed = false;
  std::optional<PoolOrigin> origin = {};  // set if imported from another process; such a pool cannot allocate
  CUmemAllocationHandleType handle_types = CU_MEM_HANDLE_TYPE_NONE;
  std::uint64_t most_bytes = UINT64_MAX;
  // The first and the third are stored without effect, because they permit reuse but do not require it.
  bool follow_event_dependencies = true;
  bool allow_opportunistic = true;
  bool allow_internal_dependencies = true;
  std::uint64_t release_threshold = 0;
  std::uint64_t reserved = 0, reserved_high = 0;
  std::uint64_t used = 0, used_high = 0;
  std::vector<std::pair<Mark, std::uint64_t>> used_until;  // bytes of blocks freed before their stream allocated them
  std::map<std::uint64_t, Chunk> chunks;
  std::map<const Device *, CUmemAccess_flags> access;
};

inline CUmemoryPool handle_of(const MemPool *pool) {
  return reinterpret_cast<CUmemoryPool>(const_cast<MemPool *>(pool));
}

// Returns null if there is no such pool, or if it was destroyed.
std::shared_ptr<MemPool> find_pool(CUmemoryPool handle);
std::shared_ptr<MemPool> default_pool(Device &device);
std::shared_ptr<MemPool> current_pool(Device &device);
// Registers the pool under its handle.
std::shared_ptr<MemPool> add_pool(MemPool pool);

// A block for later work of the stream. OUT_OF_MEMORY. REQUIRES: bytes != 0.
CUresult allocate_in_order(const std::shared_ptr<MemPool> &pool, const std::shared_ptr<Stream> &stream,
                           std::uint64_t bytes, std::uint64_t *address);
// Queues a free in the stream. From now on the block is no longer allocated.
void free_in_order(Lock &lock, std::map<std::uint64_t, Allocation>::iterator block,
                   const std::shared_ptr<Stream> &stream);
// Frees a block from the host. Any stream may reuse the block once its own stream has allocated it.
void free_at_once(Lock &lock, std::map<std::uint64_t, Allocation>::iterator block);

// trim(): releases wholly free chunks to the device while at least `keep` bytes stay reserved. trim_pools_of(): when
// another pool or cuMemAlloc lacks room, releases what no pool of the device uses, whatever the thresholds (H100, H200,
// driver 580.159).
void trim_pools_of(Device &device);
void trim(MemPool &pool, std::uint64_t keep);
// The pool's blocks stay valid; its memory is released as they are freed.
void destroy_pool(const std::shared_ptr<MemPool> &pool);
// Called after the program has waited for a stream, an event or a context. Memory whose free is known to be complete
// then becomes available to all streams, and pools release memory beyond their threshold.
void after_waiting(Lock &);

}  // namespace simcuda
