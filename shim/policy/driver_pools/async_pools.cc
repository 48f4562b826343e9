#include "policy/driver_pools/async_pools.h"

#include <algorithm>
#include <utility>

#include "base/held.h"
#include "base/wait.h"
#include "events/diagnostics.h"

namespace ration::policy {
namespace {

using driver::real;

constexpr int kMemoryPoolsSupported = 115;  // CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED

}  // namespace

bool AsyncPools::possible() {
  return real.cuMemPoolCreate.present() && real.cuMemPoolSetAttribute.present() &&
         real.cuMemPoolGetAttribute.present() && real.cuMemAllocFromPoolAsync.present() &&
         real.cuMemFreeAsync.present() && real.cuStreamCreate.present() && real.cuStreamSynchronize.present() &&
         FenceTracker::can_tell();
}

bool AsyncPools::supported_on(CUdevice device) {
  int supported = 1;
  return !real.cuDeviceGetAttribute.present() ||
         (real.cuDeviceGetAttribute(&supported, kMemoryPoolsSupported, device) == CUDA_SUCCESS && supported != 0);
}

AsyncPools::~AsyncPools() {
  for (std::atomic<DevicePool *> &device_pool : device_pools_) {
    delete device_pool.load(std::memory_order_acquire);
  }
}

bool AsyncPools::set_up(CUmemoryPool pool, int device) {
  cuuint64_t threshold = ledger_.account(device).limit();
  bool done = real.cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold) == CUDA_SUCCESS;
  if (deterministic_) {
    for (const CUmemPool_attribute which :
         {CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC, CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES}) {
      int allowed = 0;
      done = real.cuMemPoolSetAttribute(pool, which, &allowed) == CUDA_SUCCESS && done;
    }
  }
  return done;
}

void AsyncPools::allow(CUmemoryPool pool, int from) {
  if (real.cuMemPoolSetAccess.present()) {
    const CUmemAccessDesc desc{{CU_MEM_LOCATION_TYPE_DEVICE, from}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    real.cuMemPoolSetAccess(pool, &desc, 1);
  }
}

void AsyncPools::make(DevicePool &device_pool, int device) {
  const Device *known_device = devices_.find(device);
  if (known_device == nullptr || !supported_on(known_device->handle)) {
    events::say("mode async: device " + std::to_string(device) + " has no memory pools; mode pool serves it");
    return;
  }
  const RelaxedCapture relaxed;
  CUmemPoolProps props{};
  props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  props.location = {CU_MEM_LOCATION_TYPE_DEVICE, device};
  // What is guaranteed is all that others leave at the worst; beyond it the driver serves.
  const std::uint64_t guaranteed = ledger_.account(device).guaranteed();
  const std::uint64_t most = std::min(ledger_.account(device).cap(), guaranteed != 0 ? guaranteed : UINT64_MAX);
  props.maxSize = StreamPools::have_caps() && most != UINT64_MAX ? StreamPools::cap_within(most) : 0;
  device_pool.capped = props.maxSize != 0;
  CUmemoryPool pool = nullptr;
  CUresult result = real.cuMemPoolCreate(&pool, &props);
  if (result != CUDA_SUCCESS && device_pool.capped) {
    device_pool.capped = false;
    props.maxSize = 0;
    result = real.cuMemPoolCreate(&pool, &props);
  }
  if (result != CUDA_SUCCESS) {
    events::say("mode async: device " + std::to_string(device) + ": no memory pool can be made (error " +
                std::to_string(result) + "); mode pool serves it");
    return;
  }
  if (!set_up(pool, device)) {
    events::say("mode async: device " + std::to_string(device) + ": the pool does not take all its attributes");
  }
  std::list<int> from;
  {
    Guard guard(mutex_);
    for (const auto &[pair, count] : peers_) {
      if (count > 0 && static_cast<int>(pair & UINT32_MAX) == device) {
        from.push_back(static_cast<int>(pair >> 32U));
      }
    }
  }
  for (const int each : from) {
    allow(pool, each);
  }
  stream_pools_.created(pool, props);
  device_pool.pool = stream_pools_.find(pool, device);
}

AsyncPools::DevicePool &AsyncPools::device_pool_on(int device) {
  if (DevicePool *device_pool = known(device)) {
    return *device_pool;
  }
  const ReentrantGate turn(making_);
  if (known(device) == nullptr) {
    auto device_pool = std::make_unique<DevicePool>(fences_, device);
    make(*device_pool, device);
    device_pools_[device].store(device_pool.release(), std::memory_order_release);
  }
  return *known(device);
}

StreamPools::PoolRef AsyncPools::pool_on(int device) {
  return device_pool_on(device).pool;
}

bool AsyncPools::owns(const StreamPools::PoolRef &pool) const {
  const DevicePool *device_pool = pool != nullptr && pool->device >= 0 ? known(pool->device) : nullptr;
  return device_pool != nullptr && device_pool->pool == pool;
}

bool AsyncPools::owns_handle(std::uintptr_t handle) const {
  return std::any_of(std::begin(device_pools_), std::end(device_pools_),
                     [handle](const std::atomic<DevicePool *> &each) {
                       const DevicePool *device_pool = each.load(std::memory_order_acquire);
                       return device_pool != nullptr && device_pool->pool != nullptr &&
                              reinterpret_cast<std::uintptr_t>(device_pool->pool->handle) == handle;
                     });
}

// One for each context life; it belongs to the context itself, whichever green context is current.
CUstream AsyncPools::stream_of(const ContextRef &context, CUresult &error) {
  {
    Guard guard(mutex_);
    const auto found = streams_.find(context.get());
    if (found != streams_.end()) {
      return found->second;
    }
  }
  const CurrentFor current(context->handle);
  CUstream made = nullptr;
  error = current ? real.cuStreamCreate(&made, CU_STREAM_NON_BLOCKING) : current.error();
  if (error != CUDA_SUCCESS) {
    return nullptr;
  }
  CUstream kept = nullptr;
  try {
    Guard guard(mutex_);
    kept = streams_.try_emplace(context.get(), made).first->second;
  } catch (...) {
    error = CUDA_ERROR_OUT_OF_MEMORY;
  }
  if (kept != made && real.cuStreamDestroy_v2.present()) {
    real.cuStreamDestroy_v2(made);
  }
  return kept;
}

CUresult AsyncPools::try_take(const DevicePool &device_pool, CUstream stream, std::uint64_t bytes,
                              CUdeviceptr *address) {
  CUdeviceptr block = 0;
  CUresult result = real.cuMemAllocFromPoolAsync(&block, bytes, device_pool.pool->handle, stream);
  if (result != CUDA_SUCCESS) {
    return result;
  }
  result = real.cuStreamSynchronize(stream);
  if (result != CUDA_SUCCESS) {
    real.cuMemFreeAsync(block, stream);
    return result;
  }
  *address = block;
  return CUDA_SUCCESS;
}

CUresult AsyncPools::take(int device, const ContextRef &context, std::uint64_t bytes, CUdeviceptr *address) {
  DevicePool &device_pool = device_pool_on(device);
  const RelaxedCapture relaxed;
  CUresult error = CUDA_SUCCESS;
  const CUstream stream = stream_of(context, error);
  if (error != CUDA_SUCCESS) {
    return error;
  }
  CUresult result = try_take(device_pool, stream, bytes, address);
  // A synchronise lets the driver coalesce and remap what is free.
  if (result == CUDA_ERROR_OUT_OF_MEMORY && real.cuStreamSynchronize(stream) == CUDA_SUCCESS) {
    result = try_take(device_pool, stream, bytes, address);
  }
  device_pool.full.store(result == CUDA_ERROR_OUT_OF_MEMORY, std::memory_order_relaxed);
  return result;
}

CUresult AsyncPools::put_back(const ContextRef &context, CUdeviceptr address) {
  const RelaxedCapture relaxed;
  CUresult error = CUDA_SUCCESS;
  const CUstream stream = stream_of(context, error);
  if (error != CUDA_SUCCESS) {
    return error;
  }
  error = real.cuMemFreeAsync(address, stream);
  return error == CUDA_SUCCESS ? real.cuStreamSynchronize(stream) : error;
}

bool AsyncPools::is_capped(int device) const {
  const DevicePool *device_pool = known(device);
  return device_pool != nullptr && device_pool->capped;
}

bool AsyncPools::was_full(int device) const {
  const DevicePool *device_pool = known(device);
  return device_pool != nullptr && device_pool->full.load(std::memory_order_relaxed);
}

std::uint64_t AsyncPools::idle_bytes(int device) const {
  const DevicePool *device_pool = known(device);
  return device_pool == nullptr || device_pool->pool == nullptr ? 0 : StreamPools::idle_bytes(*device_pool->pool);
}

std::uint64_t AsyncPools::used_bytes(int device) const {
  const DevicePool *device_pool = known(device);
  return device_pool == nullptr || device_pool->pool == nullptr ? 0 : StreamPools::used_bytes(*device_pool->pool);
}

std::uint64_t AsyncPools::retained_bytes(int device) const {
  DevicePool *device_pool = known(device);
  return device_pool == nullptr ? 0 : device_pool->frees.retained_bytes();
}

std::uint64_t AsyncPools::deferred_bytes(int device) const {
  const DevicePool *device_pool = known(device);
  return device_pool == nullptr ? 0 : device_pool->frees.bytes();
}

std::uint64_t AsyncPools::free_bytes(int device) {
  const DevicePool *device_pool = known(device);
  return device_pool == nullptr ? 0 : idle_bytes(device) + deferred_bytes(device) + device_pool->frees.retained_bytes();
}

std::uint64_t AsyncPools::ordered_bytes(int device) const {
  const DevicePool *device_pool = known(device);
  return device_pool == nullptr ? 0 : device_pool->ordered.load(std::memory_order_relaxed);
}

void AsyncPools::freed_in_order(int device, std::uint64_t bytes) noexcept {
  if (DevicePool *device_pool = known(device)) {
    device_pool->ordered.fetch_add(StreamPools::whole_units(bytes), std::memory_order_relaxed);
  }
}

// Of what is freed meanwhile the pool may or may not know: it is counted until the next time.
void AsyncPools::note_ordered(int device, const ContextRef &context) {
  DevicePool *device_pool = known(device);
  std::uint64_t ordered = ordered_bytes(device);
  if (ordered == 0) {
    return;
  }
  const RelaxedCapture relaxed;
  CUresult error = CUDA_SUCCESS;
  const CUstream stream = stream_of(context, error);
  if (error != CUDA_SUCCESS || real.cuStreamSynchronize(stream) != CUDA_SUCCESS) {
    return;
  }
  if (const std::uint64_t used = used_bytes(device); used < ordered) {
    device_pool->ordered.compare_exchange_strong(ordered, used, std::memory_order_relaxed);
  }
}

bool AsyncPools::defer(int device, const DeferredBlock &block) noexcept {
  DevicePool *device_pool = known(device);
  in_use_.store(true, std::memory_order_relaxed);
  return device_pool != nullptr && device_pool->frees.add(block);
}

bool AsyncPools::covers(CUdeviceptr address) {
  return in_use_.load(std::memory_order_relaxed) &&
         std::any_of(std::begin(device_pools_), std::end(device_pools_),
                     [address](const std::atomic<DevicePool *> &each) {
                       DevicePool *device_pool = each.load(std::memory_order_acquire);
                       return device_pool != nullptr && device_pool->frees.covers(address);
                     });
}

bool AsyncPools::begin_preallocation(int device) {
  return !device_pool_on(device).preallocated.exchange(true);
}

CUresult AsyncPools::preallocate(int device, const ContextRef &context, std::uint64_t bytes) {
  const RelaxedCapture relaxed;
  CUresult error = CUDA_SUCCESS;
  const CUstream stream = stream_of(context, error);
  if (error != CUDA_SUCCESS) {
    return error;
  }
  CUdeviceptr all = 0;
  error = real.cuMemAllocFromPoolAsync(&all, bytes, device_pool_on(device).pool->handle, stream);
  if (error != CUDA_SUCCESS) {
    return error;
  }
  error = real.cuMemFreeAsync(all, stream);
  return error == CUDA_SUCCESS ? real.cuStreamSynchronize(stream) : error;
}

void AsyncPools::peer_changed(int from, int to, bool enabled) noexcept try {
  {
    Guard guard(mutex_);
    int &count = peers_[std::uint64_t{static_cast<unsigned>(from)} << 32U | static_cast<unsigned>(to)];
    count = std::max(0, count + (enabled ? 1 : -1));
  }
  const DevicePool *device_pool = known(to);
  if (enabled && device_pool != nullptr && device_pool->pool != nullptr && from != to) {
    allow(device_pool->pool->handle, from);
  }
} catch (...) {  // no memory of the host: pools that are made later miss this pair
}

void AsyncPools::forget(const ContextRef &context) noexcept {
  Guard guard(mutex_);
  streams_.erase(context.get());
}

}  // namespace ration::policy
