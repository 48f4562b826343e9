#include "policy/driver_pools/async_pools.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/wait.h"
#include "events/diagnostics.h"

namespace ration::policy {
namespace {

using driver::real;

constexpr int kMemoryPoolsSupported = 115;  // CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED
// Bytes that are worth an epoch, which costs the driver calls of one fence.
constexpr std::uint64_t kLeastDueBytes = 64U << 20U;
// Each free gets its own fence, before any later work, unless frees come so fast that the fences would cost too much.
constexpr std::uint64_t kSealEveryNs = 200'000;

void allow(CUmemoryPool pool, int from) {
  if (real.cuMemPoolSetAccess.present()) {
    const CUmemAccessDesc desc{{CU_MEM_LOCATION_TYPE_DEVICE, from}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    real.cuMemPoolSetAccess(pool, &desc, 1);
  }
}

CUresult try_take(CUmemoryPool pool, CUstream stream, std::uint64_t bytes, CUdeviceptr *address) {
  CUdeviceptr block = 0;
  CUresult result = real.cuMemAllocFromPoolAsync(&block, bytes, pool, stream);
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
  cuuint64_t threshold = parts_.ledger.account(device).limit();
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

void AsyncPools::make(DevicePool &device_pool, int device) {
  const Device *known_device = parts_.devices.find(device);
  if (known_device == nullptr || !supported_on(known_device->handle)) {
    events::say("mode async: device " + std::to_string(device) + " has no memory pools; mode pool is used instead");
    return;
  }
  const RelaxedCapture relaxed;
  CUmemPoolProps props{};
  props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  props.location = {CU_MEM_LOCATION_TYPE_DEVICE, device};
  // With a guarantee, the pool's cap is the guarantee, because others may take the rest. Beyond it, blocks are the
  // driver's own.
  const std::uint64_t guaranteed = parts_.ledger.account(device).guaranteed();
  const std::uint64_t most = std::min(parts_.ledger.account(device).cap(), guaranteed != 0 ? guaranteed : UINT64_MAX);
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
                std::to_string(result) + "); mode pool is used instead");
    return;
  }
  if (!set_up(pool, device)) {
    events::say("mode async: device " + std::to_string(device) + ": the pool does not take all its attributes");
  }
  std::vector<int> from;
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
  parts_.stream_pools.created(pool, props);
  device_pool.pool = parts_.stream_pools.find(pool, device);
}

AsyncPools::DevicePool &AsyncPools::made_on(int device) {
  std::atomic<DevicePool *> &place = device_pools_[device];
  if (place.load(std::memory_order_acquire) == nullptr) {
    const ReentrantGate turn(making_);
    if (place.load(std::memory_order_acquire) == nullptr) {
      auto device_pool = std::make_unique<DevicePool>(parts_.fences, device);
      make(*device_pool, device);
      place.store(device_pool.release(), std::memory_order_release);
    }
  }
  return on(device);
}

StreamPools::PoolRef AsyncPools::pool_on(int device) {
  return made_on(device).pool;
}

bool AsyncPools::owns(const StreamPools::PoolRef &pool) const {
  return pool != nullptr && pool->device >= 0 && on(pool->device).pool == pool;
}

bool AsyncPools::owns_handle(std::uintptr_t handle) const {
  return std::any_of(std::begin(device_pools_), std::end(device_pools_),
                     [handle](const std::atomic<DevicePool *> &each) {
                       const DevicePool *device_pool = each.load(std::memory_order_acquire);
                       return device_pool != nullptr && device_pool->pool != nullptr &&
                              reinterpret_cast<std::uintptr_t>(device_pool->pool->handle) == handle;
                     });
}

// Makes one stream for each life of a context. It belongs to the context itself, whichever green context is current.
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

CUresult AsyncPools::on_stream(const ContextRef &context, FunctionRef<CUresult(CUstream)> act) {
  const RelaxedCapture relaxed;
  CUresult error = CUDA_SUCCESS;
  const CUstream stream = stream_of(context, error);
  return error == CUDA_SUCCESS ? act(stream) : error;
}

CUresult AsyncPools::take(int device, const ContextRef &context, std::uint64_t bytes, CUdeviceptr *address) {
  DevicePool &device_pool = made_on(device);
  return on_stream(context, [&](CUstream stream) {
    CUresult result = try_take(device_pool.pool->handle, stream, bytes, address);
    // A synchronise lets the driver coalesce and remap free memory.
    if (result == CUDA_ERROR_OUT_OF_MEMORY && real.cuStreamSynchronize(stream) == CUDA_SUCCESS) {
      result = try_take(device_pool.pool->handle, stream, bytes, address);
    }
    device_pool.full.store(result == CUDA_ERROR_OUT_OF_MEMORY, std::memory_order_relaxed);
    return result;
  });
}

CUresult AsyncPools::put_back(const ContextRef &context, CUdeviceptr address) {
  return on_stream(context, [&](CUstream stream) {
    const CUresult result = real.cuMemFreeAsync(address, stream);
    return result == CUDA_SUCCESS ? real.cuStreamSynchronize(stream) : result;
  });
}

void AsyncPools::freed_in_order(int device, std::uint64_t bytes) noexcept {
  on(device).ordered.fetch_add(StreamPools::whole_units(bytes), std::memory_order_relaxed);
}

// The pool may or may not know of blocks that are freed meanwhile, so these stay counted until the next call.
void AsyncPools::note_ordered(int device, const ContextRef &context) {
  std::uint64_t ordered = ordered_bytes(device);
  if (ordered == 0) {
    return;
  }
  if (on_stream(context, [](CUstream stream) { return real.cuStreamSynchronize(stream); }) != CUDA_SUCCESS) {
    return;
  }
  if (const std::uint64_t used = used_bytes(device); used < ordered) {
    on(device).ordered.compare_exchange_strong(ordered, used, std::memory_order_relaxed);
  }
}

bool AsyncPools::defer(int device, const DeferredBlock &block) noexcept {
  in_use_.store(true, std::memory_order_relaxed);
  return on(device).frees.add(block);
}

bool AsyncPools::covers(CUdeviceptr address) {
  return in_use_.load(std::memory_order_relaxed) &&
         std::any_of(std::begin(device_pools_), std::end(device_pools_),
                     [address](const std::atomic<DevicePool *> &each) {
                       DevicePool *device_pool = each.load(std::memory_order_acquire);
                       return device_pool != nullptr && device_pool->frees.covers(address);
                     });
}

// Removes each block from the address book first, because after the driver's call another thread may get the address.
// The blocks count as returned once the stream has passed all their frees: before that, no other stream could get them,
// and a thread that looks for memory may be in another context.
bool AsyncPools::free_through(const ContextRef &context, DevicePool &device_pool,
                              DeferredFrees::Items &blocks) noexcept {
  CUresult error = CUDA_SUCCESS;
  const CUstream stream = stream_of(context, error);
  const CurrentFor current(context->handle);
  if (error != CUDA_SUCCESS || !current) {
    return false;
  }
  DeferredFrees::Items taken;
  DeferredFrees::Items refused;
  while (!blocks.empty()) {
    const DeferredBlock &block = DeferredBlock::of(blocks.front());
    DeferredFrees::Held held = device_pool.frees.begin_return(block);
    const bool done = real.cuMemFreeAsync(block.address, stream) == CUDA_SUCCESS;
    if (!done) {
      device_pool.frees.finish_return(block, std::move(held), false);
    }
    DeferredFrees::Items &into = done ? taken : refused;
    into.splice(into.end(), blocks, blocks.begin());
  }
  blocks.swap(refused);
  if (taken.empty()) {
    return false;
  }
  real.cuStreamSynchronize(stream);  // after this the pool counts them as free
  for (const std::unique_ptr<Deferred> &block : taken) {
    device_pool.frees.finish_return(DeferredBlock::of(block), {}, true);
  }
  return true;
}

bool AsyncPools::give_back(DevicePool &device_pool, DeferredFrees::Items &clean) noexcept {
  if (clean.empty()) {
    return false;
  }
  if (!serves_again(device_pool) && device_pool.frees.retain(clean)) {
    return true;
  }
  const bool any = return_some(device_pool, clean);
  device_pool.frees.keep(clean);
  return any;
}

// Whether the memory of a block that is returned to the pool can be allocated again.
bool AsyncPools::serves_again(const DevicePool &device_pool) {
  const StreamPools::Pool &pool = *device_pool.pool;
  const bool may_grow = parts_.ledger.account(pool.device).available() >= parts_.stream_pools.upper_bound(pool, 1);
  return may_grow || parts_.stream_pools.can_reach_cap(pool);
}

CUdeviceptr AsyncPools::take_retained(const StreamPools::PoolRef &pool, std::uint64_t bytes) noexcept {
  const CUdeviceptr address = on(pool->device).frees.take_retained(bytes);
  if (address != 0) {
    parts_.stream_pools.block_begun(*pool);
  }
  return address;
}

void AsyncPools::release_needless(int device) noexcept {
  if (retained_bytes(device) > 0 && serves_again(on(device))) {
    release_retained(device);
  }
}

bool AsyncPools::release_retained(int device) noexcept {
  DevicePool &device_pool = on(device);
  if (device_pool.frees.retained_bytes() == 0) {
    return false;
  }
  DeferredFrees::Items all = device_pool.frees.release_retained();
  const bool any = return_some(device_pool, all);
  if (!all.empty() && !device_pool.frees.retain(all)) {  // stay retained: no use to a thread that waits for frees
    device_pool.frees.keep(all);
  }
  return any;
}

bool AsyncPools::return_some(DevicePool &device_pool, DeferredFrees::Items &clean) noexcept {
  const RelaxedCapture relaxed;
  DeferredFrees::Items kept;
  bool any = false;
  using Block = std::unique_ptr<Deferred>;
  const auto context_of = [](const Block &block) -> const ContextRef & { return DeferredBlock::of(block).context; };
  clean.sort([&](const Block &one, const Block &other) { return context_of(one) < context_of(other); });
  while (!clean.empty()) {
    const ContextRef context = context_of(clean.front());  // each context has its own stream
    const auto next =
        std::find_if(clean.begin(), clean.end(), [&](const Block &block) { return context_of(block) != context; });
    DeferredFrees::Items blocks;
    blocks.splice(blocks.end(), clean, clean.begin(), next);
    if (const Pin pin(*context); pin) {
      any |= free_through(context, device_pool, blocks);
    } else {
      any |= free_elsewhere(device_pool, blocks);
    }
    kept.splice(kept.end(), blocks);
  }
  clean.splice(clean.end(), kept);
  return any;
}

// Frees blocks whose context has ended.
bool AsyncPools::free_elsewhere(DevicePool &device_pool, DeferredFrees::Items &blocks) noexcept try {
  bool any = false;
  for (const ContextRef &other : parts_.contexts.live()) {
    const Pin pin(*other);
    any |= pin && !blocks.empty() && free_through(other, device_pool, blocks);
  }
  return any;
} catch (...) {  // no host memory to list the other contexts
  return false;
}

void AsyncPools::record_wait(const char *api, int device, const DeferredFrees::Cleaned &cleaned,
                             std::uint64_t start_ns) {
  if (cleaned.waited) {
    parts_.journal.record(events::Wait{device, api, parts_.fences.by_events() ? "event" : "synchronize", cleaned.blocks,
                                       cleaned.bytes, now_ns() - start_ns, cleaned.error});
  }
}

void AsyncPools::collect(int device) noexcept {
  DevicePool &device_pool = on(device);
  device_pool.collected_ns.store(now_ns(), std::memory_order_relaxed);
  DeferredFrees::Cleaned cleaned = device_pool.frees.collect(DeferredFrees::Sealing::always);
  give_back(device_pool, cleaned.items);
}

void AsyncPools::poll_if_due(int device) noexcept {
  DevicePool &device_pool = on(device);
  if (device_pool.frees.blocks() == 0) {
    return;
  }
  if (now_ns() - device_pool.collected_ns.load(std::memory_order_relaxed) > kSealEveryNs ||
      device_pool.frees.is_worth_collecting(std::max(kLeastDueBytes, parts_.ledger.account(device).charged() / 8))) {
    collect(device);
  }
}

bool AsyncPools::reclaim(const char *api, int device, std::uint64_t seen) noexcept {
  DevicePool &device_pool = on(device);
  DeferredFrees &frees = device_pool.frees;
  const std::uint64_t begun = now_ns();
  for (Backoff backoff; frees.reclaimed() == seen;) {
    const std::uint64_t start = now_ns();
    DeferredFrees::Cleaned cleaned = frees.wait(seen);
    record_wait(api, device, cleaned, start);
    if (give_back(device_pool, cleaned.items) || cleaned.others_cleaned) {
      continue;
    }
    const bool for_a_capture = cleaned.capturing && cleaned.error == CUDA_SUCCESS &&
                               parts_.fences.captures().run_elsewhere_only() && now_ns() - begun < kCapturePatienceNs;
    if (!for_a_capture) {
      return frees.reclaimed() != seen;
    }
    backoff.sleep();
  }
  return true;
}

void AsyncPools::wait_for_context(const char *api, int device, const Context &context) noexcept {
  DevicePool &device_pool = on(device);
  const std::uint64_t start = now_ns();
  DeferredFrees::Cleaned cleaned = device_pool.frees.wait_for_context(context);
  record_wait(api, device, cleaned, start);
  give_back(device_pool, cleaned.items);
}

bool AsyncPools::has_unsealed_frees() const {
  for (int device = 0; in_use_.load(std::memory_order_relaxed) && device < ledger::kMaxDevices; ++device) {
    if (on(device).frees.has_unsealed()) {
      return true;
    }
  }
  return false;
}

void AsyncPools::seal_frees() noexcept {
  for (int device = 0; !parts_.fences.captures().running() && device < ledger::kMaxDevices; ++device) {
    if (DevicePool &device_pool = on(device); device_pool.frees.has_unsealed()) {
      DeferredFrees::Cleaned cleaned = device_pool.frees.collect(DeferredFrees::Sealing::before_work);
      give_back(device_pool, cleaned.items);
    }
  }
}

void AsyncPools::before_synchronise() noexcept {
  for (int device = 0; in_use_.load(std::memory_order_relaxed) && device < ledger::kMaxDevices; ++device) {
    if (DevicePool &device_pool = on(device); device_pool.frees.blocks() > 0) {
      collect(device);
      device_pool.frees.seal_finely();
    }
  }
}

CUresult AsyncPools::drain(const char *api, int device) noexcept {
  DevicePool &device_pool = on(device);
  const std::uint64_t start = now_ns();
  DeferredFrees::Cleaned cleaned = device_pool.frees.drain();
  record_wait(api, device, cleaned, start);
  give_back(device_pool, cleaned.items);
  return cleaned.error;
}

bool AsyncPools::begin_preallocation(int device) {
  return !made_on(device).preallocated.exchange(true);
}

CUresult AsyncPools::preallocate(int device, const ContextRef &context, std::uint64_t bytes) {
  CUdeviceptr all = 0;
  const CUresult result = on_stream(context, [&](CUstream stream) {
    return real.cuMemAllocFromPoolAsync(&all, bytes, made_on(device).pool->handle, stream);
  });
  return result == CUDA_SUCCESS ? put_back(context, all) : result;
}

void AsyncPools::peer_changed(int from, int to, bool enabled) noexcept try {
  {
    Guard guard(mutex_);
    int &count = peers_[std::uint64_t{static_cast<unsigned>(from)} << 32U | static_cast<unsigned>(to)];
    count = std::max(0, count + (enabled ? 1 : -1));
  }
  if (const StreamPools::PoolRef pool = on(to).pool; enabled && pool != nullptr && from != to) {
    allow(pool->handle, from);
  }
} catch (...) {  // no host memory: pools that are made later do not learn of this pair
}

void AsyncPools::forget(const ContextRef &context) noexcept {
  Guard guard(mutex_);
  streams_.erase(context.get());
}

}  // namespace ration::policy
