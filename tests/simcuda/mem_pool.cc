#include "tests/simcuda/mem_pool.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "tests/simcuda/bytes.h"
#include "tests/simcuda/entry.h"

namespace simcuda {
namespace {

void reconcile(MemPool &pool) {
  for (auto &[address, chunk] : pool.chunks) chunk.reconcile([](const Mark &mark) { return mark.reached(); });
  std::erase_if(pool.used_until, [&pool](const auto &entry) {
    if (!entry.first.reached()) return false;
    pool.used -= entry.second;
    return true;
  });
}

bool grow(MemPool &pool, std::uint64_t bytes) {
  Device &device = *pool.device;
  const std::uint64_t step = round_up(bytes, kPoolStepBytes);
  if (step > pool.most_bytes - pool.reserved) return false;
  if (!has_addresses(device) || !driver().machine->reserve(device.physical, step)) return false;
  const auto base = device.space->take(step);
  if (!base) {
    driver().machine->release(device.physical, step);
    return false;
  }
  pool.chunks.emplace(*base, Chunk(*base, step));
  about(step);
  pool.reserved += step;
  pool.reserved_high = std::max(pool.reserved_high, pool.reserved);
  return true;
}

// A stream is ordered after its own frees. For other streams only the device's progress counts.
std::optional<std::uint64_t> take(MemPool &pool, const std::shared_ptr<Stream> &stream, std::uint64_t bytes) {
  const auto usable = [&](const Mark &mark) {
    return mark.stream == stream || (pool.allow_opportunistic && mark.reached());
  };
  for (auto &[address, chunk] : pool.chunks) {
    if (auto block = chunk.take(bytes, usable)) return block;
  }
  return std::nullopt;
}

std::map<std::uint64_t, Chunk>::iterator chunk_of(MemPool &pool, std::uint64_t address) {
  return std::prev(pool.chunks.upper_bound(address));
}

// Returns the bytes that the block took.
std::uint64_t give(std::map<std::uint64_t, Allocation>::iterator block, Mark pending_free) {
  MemPool &pool = *block->second.pool;
  if (block->second.published) pool.device->space->publish(block->first, 0);
  const std::uint64_t bytes = chunk_of(pool, block->first)->second.give(block->first, std::move(pending_free));
  driver().allocations.erase(block);
  return bytes;
}

// Queued after the free, so that it has been reached: no later call polls a destroyed pool.
void end_after(Lock &lock, const std::shared_ptr<MemPool> &pool, const std::shared_ptr<Stream> &stream) {
  submit(lock, stream, Pace::kInstant, [pool] {
    const Lock in_stream_order(driver().mutex);
    if (pool->destroyed) destroy_pool(pool);
  });
}

void forget_if_empty(const MemPool &pool) {
  if (pool.destroyed && pool.chunks.empty()) driver().mem_pools.erase(&pool);
}

}  // namespace

std::shared_ptr<MemPool> find_pool(CUmemoryPool handle) {
  const auto found = driver().mem_pools.find(handle);
  return found == driver().mem_pools.end() || found->second->destroyed ? nullptr : found->second;
}

std::shared_ptr<MemPool> add_pool(MemPool pool) {
  auto made = std::make_shared<MemPool>(std::move(pool));
  made->id = driver().next_id++;
  driver().mem_pools.emplace(made.get(), made);
  return made;
}

std::shared_ptr<MemPool> default_pool(Device &device) {
  if (device.default_pool == nullptr) {
    MemPool pool;
    pool.device = &device;
    pool.is_default = true;
    device.default_pool = add_pool(std::move(pool));
  }
  return device.default_pool;
}

std::shared_ptr<MemPool> current_pool(Device &device) {
  return device.current_pool == nullptr ? default_pool(device) : device.current_pool;
}

CUresult allocate_in_order(const std::shared_ptr<MemPool> &pool, const std::shared_ptr<Stream> &stream,
                           std::uint64_t bytes, std::uint64_t *address) {
  if (bytes > pool->device->bytes) return CUDA_ERROR_OUT_OF_MEMORY;
  const std::uint64_t cost = round_up(bytes, kUnitBytes);
  auto block = take(*pool, stream, cost);
  if (!block && !grow(*pool, cost)) {
    // Idle chunks that are too small are released to make room for one that is large enough.
    if (pool->allow_opportunistic) reconcile(*pool);
    trim(*pool, 0);
    if (!grow(*pool, cost)) {
      trim_pools_of(*pool->device);
      if (!grow(*pool, cost)) return CUDA_ERROR_OUT_OF_MEMORY;
    }
  }
  if (!block) block = take(*pool, stream, cost);
  pool->used += cost;
  pool->used_high = std::max(pool->used_high, pool->used);
  driver().allocations.emplace(*block, Allocation{.requested = bytes,
                                                  .bytes = cost,
                                                  .device = pool->device,
                                                  .id = driver().next_id++,
                                                  .pool = pool,
                                                  .allocated = {stream, stream->submitted}});
  *address = *block;
  return CUDA_SUCCESS;
}

void free_in_order(Lock &lock, std::map<std::uint64_t, Allocation>::iterator block,
                   const std::shared_ptr<Stream> &stream) {
  const std::shared_ptr<MemPool> pool = block->second.pool;
  Mark reached = submit(lock, stream, Pace::kDelayed, [] {});
  pool->used -= give(block, std::move(reached));
  end_after(lock, pool, stream);
}

// H100, H200, driver 580.159: does not wait for the stream that allocated it; its bytes count as used meanwhile.
void free_at_once(Lock &lock, std::map<std::uint64_t, Allocation>::iterator block) {
  const std::shared_ptr<MemPool> pool = block->second.pool;
  const Mark allocated = block->second.allocated;
  if (allocated.reached()) {
    pool->used -= give(block, {});
    if (pool->destroyed) destroy_pool(pool);
  } else {
    pool->used_until.emplace_back(allocated, give(block, allocated));
    end_after(lock, pool, allocated.stream);
  }
}

void trim(MemPool &pool, std::uint64_t keep) {
  const std::uint64_t before = pool.reserved;
  for (auto chunk = pool.chunks.end(); chunk != pool.chunks.begin();) {
    --chunk;
    const std::uint64_t bytes = chunk->second.bytes();
    if (!chunk->second.idle() || pool.reserved < keep || pool.reserved - keep < bytes) continue;
    pool.device->space->give(chunk->first, bytes);
    driver().machine->release(pool.device->physical, bytes);
    pool.reserved -= bytes;
    chunk = pool.chunks.erase(chunk);
  }
  if (pool.reserved != before) about(before - pool.reserved);
}

void trim_pools_of(Device &device) {
  for (const auto &[handle, pool] : driver().mem_pools) {
    if (pool->device != &device) continue;
    reconcile(*pool);
    trim(*pool, 0);
  }
}

void destroy_pool(const std::shared_ptr<MemPool> &pool) {
  pool->destroyed = true;
  if (pool->device->current_pool == pool) pool->device->current_pool = nullptr;
  reconcile(*pool);
  trim(*pool, 0);
  forget_if_empty(*pool);
}

void after_waiting(Lock &) {
  for (const auto &[handle, pool] : driver().mem_pools) {
    reconcile(*pool);
    trim(*pool, pool->release_threshold);
  }
  std::erase_if(driver().mem_pools,
                [](const auto &entry) { return entry.second->destroyed && entry.second->chunks.empty(); });
}

}  // namespace simcuda
