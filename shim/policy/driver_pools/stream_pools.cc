#include "policy/driver_pools/stream_pools.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/saturating.h"
#include "base/wait.h"
#include "policy/contexts/captures.h"

namespace ration::policy {
namespace {

using driver::real;

constexpr int kOvertakings = 100;     // tries of a request that fits, while other processes are faster
constexpr int kMaxSizeSince = 12030;  // the first driver version that knows CUmemPoolProps::maxSize

// Stand for handles, because the pool of a device's graphs has none.
constexpr char kGraphTags[ledger::kMaxDevices] = {};
CUmemoryPool graph_tag(int device) {
  return reinterpret_cast<CUmemoryPool>(const_cast<char *>(&kGraphTags[device]));
}

}  // namespace

bool StreamPools::can_tell() {
  return real.cuMemPoolGetAttribute.present();
}

bool StreamPools::can_tell_of_graphs() {
  return real.cuDeviceGetGraphMemAttribute.present();
}

bool StreamPools::have_caps() {
  int version = 0;
  return real.cuDriverGetVersion.present() && real.cuDriverGetVersion(&version) == CUDA_SUCCESS &&
         version >= kMaxSizeSince;
}

void StreamPools::created(CUmemoryPool handle, const CUmemPoolProps &properties) noexcept try {
  const CUmemLocation &location = properties.location;
  const bool on_host = location.type == CU_MEM_LOCATION_TYPE_HOST || location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA ||
                       location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT;
  const bool on_device =
      location.type == CU_MEM_LOCATION_TYPE_DEVICE && location.id >= 0 && location.id < ledger::kMaxDevices;
  if (!on_host && !on_device) {
    return;  // a pool of managed memory without a location: each allocation states one
  }
  const std::uint64_t rest = properties.maxSize % kLargestStep;
  const std::uint64_t cap = plus_or_most(properties.maxSize, rest == 0 ? 0 : kLargestStep - rest);
  auto made = std::make_shared<Pool>(handle, on_host ? -1 : location.id, cap);
  Guard guard(mutex_);
  pools_[handle] = std::move(made);
} catch (...) {  // no host memory: it will count for the device that is current at its first block
}

StreamPools::PoolRef StreamPools::known(CUmemoryPool handle) {
  Guard guard(mutex_);
  const auto found = pools_.find(handle);
  return found != pools_.end() ? found->second : nullptr;
}

StreamPools::PoolRef StreamPools::find(CUmemoryPool handle, int device) {
  if (PoolRef pool = known(handle)) {
    return pool;
  }
  return add_pool(std::make_shared<Pool>(handle, device));
}

StreamPools::PoolRef StreamPools::add_pool(std::shared_ptr<Pool> made) {
  const std::uint64_t reserved = made->reserved_bytes();
  made->reserved_ = reserved;
  made->most_ = reserved;
  Guard guard(mutex_);
  const auto [entry, inserted] = pools_.try_emplace(made->handle, made);
  if (inserted && reserved > 0) {  // filled by an earlier call of ours, or by calls that we do not see
    made->charged_ = reserved;
    charged_[made->device] += reserved;
    ledger_.account(made->device).charge(reserved);
  }
  return entry->second;
}

StreamPools::PoolRef StreamPools::known_of_graphs(int device) {
  return known(graph_tag(device));
}

StreamPools::PoolRef StreamPools::of_graphs(int device, CUdevice handle) {
  if (PoolRef pool = known_of_graphs(device)) {
    return pool;
  }
  return add_pool(std::make_shared<Pool>(graph_tag(device), device, 0, std::make_unique<Graphs>(handle)));
}

StreamPools::Asking::Asking(StreamPools &pools, Pool &pool) : pools_(pools), pool_(pool) {
  Guard guard(pools_.mutex_);
  allowed_ = !pool_.destroyed_;
  pool_.asking_ += allowed_ ? 1 : 0;
}

StreamPools::Asking::~Asking() {
  if (allowed_) {
    Guard guard(pools_.mutex_);
    --pool_.asking_;
    wake_waiters();
  }
}

StreamPools::PoolRef StreamPools::begin_destroy(CUmemoryPool handle) {
  PoolRef pool = known(handle);
  if (pool == nullptr) {
    return nullptr;
  }
  for (Waiter waiter;;) {
    {
      Guard guard(mutex_);
      pool->destroyed_ = true;
      if (pool->asking_ == 0) {
        pools_.erase(handle);  // after the driver's call another thread may get the same handle
        return pool;
      }
    }
    waiter.pause();
  }
}

bool StreamPools::finish_destroy(const PoolRef &pool, bool success) noexcept {
  Guard guard(mutex_);
  if (success) {
    return orphan(*pool);
  }
  pool->destroyed_ = false;
  try {
    pools_[pool->handle] = pool;
  } catch (...) {  // no host memory: at its next block the pool is added and charged again
  }
  return false;
}

bool StreamPools::orphan(Pool &pool) {
  if (!pool.destroyed_ || pool.live_ != 0 || pool.in_flight_ != 0 || pool.device < 0 || pool.charged_ == 0) {
    return false;
  }
  orphaned_[pool.device] += std::exchange(pool.charged_, 0);
  return true;
}

std::uint64_t StreamPools::orphaned(int device) {
  Guard guard(mutex_);
  return orphaned_[device];
}

bool StreamPools::has_orphans(int device) {
  Guard guard(mutex_);
  return orphaned_[device] != released_[device];
}

// Logs first, so that the record of another thread that takes these bytes comes later.
void StreamPools::release(const char *api, int device, FunctionRef<std::uint64_t()> excess,
                          FunctionRef<void(std::uint64_t)> take) {
  const ReentrantGate turn(recording_);
  std::uint64_t bytes = 0;
  {
    Guard guard(mutex_);
    bytes = excess();
  }
  if (bytes == 0) {
    return;
  }
  record(api, device, bytes);
  Guard guard(mutex_);
  bytes = std::min(bytes, excess());
  if (bytes == 0) {
    return;
  }
  take(bytes);
  charged_[device] -= bytes;
  ledger_.account(device).release(bytes);  // under the lock: who sees the lower charge finds them free
}

// Releases less if a thread that waited for later orphans has released these already.
void StreamPools::release_orphans(const char *api, int device, std::uint64_t up_to) noexcept {
  const auto left = [&]() RATION_THREAD_ANNOTATION(no_thread_safety_analysis) {
    return minus_or_zero(up_to, released_[device]);
  };
  release(api, device, left,
          [&](std::uint64_t bytes) RATION_THREAD_ANNOTATION(no_thread_safety_analysis) { released_[device] += bytes; });
}

std::uint64_t StreamPools::upper_bound(const Pool &pool, std::uint64_t bytes) {
  Guard guard(mutex_);
  const std::uint64_t step = pool.step_ != 0 && pool.most_ < kLargestStep ? pool.step_ : kLargestStep;
  std::uint64_t bound = 0;
  return __builtin_add_overflow(bytes, step - 1, &bound)
             ? UINT64_MAX
             : std::max(bound / step * step, std::min(pool.most_, kLargestStep));
}

StreamPools::Call StreamPools::start(Pool &pool, const Call &call) {
  pool.in_flight_ += call.growth;
  pool.to_cap_ += call.to_cap ? 1 : 0;
  pool.relied_ += call.relied();
  pool.charged_ += call.charged;
  charged_[pool.device] += call.charged;
  called_[pool.device] += call.charged;
  return call;
}

StreamPools::Call StreamPools::begin(Pool &pool, std::uint64_t bound) {
  Guard guard(mutex_);
  return start(pool, {bound, bound, false});
}

std::optional<StreamPools::Call> StreamPools::reserve(Pool &pool, std::uint64_t bound, ledger::Effort effort) {
  ledger::Account &account = ledger_.account(pool.device);
  ledger::ReserveOutcome outcome{};
  const auto reserve_at_once = [&]() -> std::optional<Call> {
    Guard guard(mutex_);
    outcome = account.reserve(bound, ledger::Effort::kImmediate);
    if (outcome != ledger::ReserveOutcome::granted) {
      return std::nullopt;
    }
    return start(pool, {bound, bound, false});
  };
  std::optional<Call> call = reserve_at_once();
  if (outcome == ledger::ReserveOutcome::over_group_limit && effort == ledger::Effort::kReclaimFromDead) {
    account.reclaim_from_dead();  // makes system calls, so not under the lock
    for (int tries = 0; !call && tries < kOvertakings && bound <= account.available(); ++tries) {
      call = reserve_at_once();
    }
  }
  return call;
}

std::optional<StreamPools::Call> StreamPools::reserve_to_cap(Pool &pool) {
  Guard guard(mutex_);
  ledger::Account &account = ledger_.account(pool.device);
  const std::uint64_t rest = minus_or_zero(pool.cap, pool.charged_);
  if (!leaves_its_cap(pool, account.available()) ||
      account.reserve(rest, ledger::Effort::kImmediate) != ledger::ReserveOutcome::granted) {
    return std::nullopt;
  }
  return start(pool, {rest, pool.cap, true});
}

StreamPools::Call StreamPools::share(Pool &pool, std::uint64_t bound) {
  Guard guard(mutex_);
  return start(pool, {0, bound, false, true});
}

std::uint64_t StreamPools::relied_by_others(const Pool &pool, const Call &call) {
  Guard guard(mutex_);
  return pool.relied_ - call.relied();
}

std::uint64_t StreamPools::latest_figure(const Pool &pool) {
  Guard guard(mutex_);
  return pool.reserved_;
}

bool StreamPools::extend(Pool &pool, Call &call, std::uint64_t bytes) {
  Guard guard(mutex_);
  if (bytes > 0 &&
      ledger_.account(pool.device).reserve(bytes, ledger::Effort::kImmediate) != ledger::ReserveOutcome::granted) {
    return false;
  }
  pool.relied_ -= call.relied();
  call.charged += bytes;
  pool.relied_ += call.relied();
  pool.charged_ += bytes;
  charged_[pool.device] += bytes;
  called_[pool.device] += bytes;
  return true;
}

void StreamPools::finish_and_release(Pool &pool, const Call &call, bool success) {
  Guard guard(mutex_);
  if (const std::uint64_t unused = end(pool, call, success); unused > 0) {
    ledger_.account(pool.device).release(unused);
  }
}

std::uint64_t StreamPools::finish(Pool &pool, const Call &call, bool success) {
  Guard guard(mutex_);
  return end(pool, call, success);
}

std::uint64_t StreamPools::end(Pool &pool, const Call &call, bool success) {
  pool.in_flight_ -= call.growth;
  pool.to_cap_ -= call.to_cap ? 1 : 0;
  pool.relied_ -= call.relied();
  called_[pool.device] -= call.charged;
  if (success) {
    pool.completed_ += call.growth;
    pool.live_ += pool.graphs == nullptr ? 1 : 0;  // a launch is not a block
  }
  if (success || pool.to_cap_ > 0) {
    return 0;
  }
  pool.charged_ -= call.charged;
  charged_[pool.device] -= call.charged;
  return call.charged;
}

std::uint64_t StreamPools::reconcile(const char *api, Pool &pool) noexcept {
  const Asking asking(*this, pool);
  if (pool.device < 0 || !asking) {
    return 0;
  }
  std::uint64_t missing = 0;
  for (bool is_current = false; !is_current;) {
    std::uint64_t completed_before = 0;
    std::uint64_t falls_before = 0;
    {
      Guard guard(mutex_);
      completed_before = pool.completed_;
      falls_before = pool.falls_;
    }
    const std::optional<std::uint64_t> figure = pool.reserved();
    if (!figure) {
      return 0;
    }
    const std::uint64_t reserved = *figure;
    const Seen seen{reserved, completed_before};
    {
      Guard guard(mutex_);
      is_current = reserved <= pool.charged_ || pool.falls_ == falls_before;  // else the charge fell to a later figure
      if (!is_current) {
        continue;
      }
      missing = minus_or_zero(reserved, pool.charged_);
      note_growth(pool, reserved);
    }
    const auto rest = [&]() RATION_THREAD_ANNOTATION(no_thread_safety_analysis) { return beyond(pool, seen); };
    release(api, pool.device, rest, [&pool](std::uint64_t bytes) {  // less than `rest` if calls began meanwhile
      pool.charged_ -= bytes;
      ++pool.falls_;
    });
  }
  record(api, pool.device);
  return missing;
}

bool StreamPools::charge_missing(const char *api, Pool &pool) noexcept {
  const std::uint64_t missing = reconcile(api, pool);
  if (missing > 0) {
    ledger_.account(pool.device).charge(missing);
    add(api, pool, missing);
  }
  return missing > 0;
}

// By how much the charge exceeds the driver's figure and the bounds of calls since then.
std::uint64_t StreamPools::beyond(const Pool &pool, const Seen &seen) {
  const std::uint64_t bound = seen.reserved + pool.in_flight_ + (pool.completed_ - seen.completed_before);
  return minus_or_zero(pool.charged_, bound);
}

void StreamPools::note_growth(Pool &pool, std::uint64_t reserved) {
  if (pool.graphs != nullptr && reserved < pool.reserved_) {
    pool.graphs->losses.fetch_add(1);
  }
  const bool may_be_cut = pool.cap != 0 && reserved + kLargestStep > pool.cap;  // the last step before its cap
  if (const std::uint64_t growth = minus_or_zero(reserved, pool.reserved_); growth > 0 && !may_be_cut) {
    pool.step_ = std::max(kUnitBytes, std::gcd(pool.step_ != 0 ? pool.step_ : kLargestStep, growth));
    pool.most_ = std::max(pool.most_, growth);
  }
  pool.reserved_ = reserved;
}

void StreamPools::add(const char *api, Pool &pool, std::uint64_t bytes) {
  {
    Guard guard(mutex_);
    pool.charged_ += bytes;
    charged_[pool.device] += bytes;
  }
  record(api, pool.device);
}

void StreamPools::block_begun(Pool &pool) noexcept {
  Guard guard(mutex_);
  ++pool.live_;
}

bool StreamPools::block_ended(Pool &pool, std::uint64_t bytes) noexcept {
  Guard guard(mutex_);
  if (pool.graphs != nullptr) {
    pool.graphs->live_bytes.fetch_sub(whole_units(bytes));
  }
  pool.live_ -= pool.live_ > 0 ? 1 : 0;
  return orphan(pool);
}

std::vector<StreamPools::PoolRef> StreamPools::pools_of(int device) {
  std::vector<PoolRef> pools;
  Guard guard(mutex_);
  if (charged_[device] == 0) {
    return pools;
  }
  for (const auto &[handle, pool] : pools_) {
    if (pool->device == device && pool->charged_ > 0) {
      pools.push_back(pool);
    }
  }
  return pools;
}

void StreamPools::trim_one(const char *api, Pool &pool, std::uint64_t bytes) noexcept {
  if (pool.graphs != nullptr) {
    pool.graphs->trim();
  } else if (const Asking asking(*this, pool); asking && real.cuMemPoolTrimTo.present()) {
    const RelaxedCapture relaxed;
    const std::optional<std::uint64_t> reserved = bytes == UINT64_MAX ? bytes : pool.reserved();
    if (reserved) {
      real.cuMemPoolTrimTo(pool.handle, minus_or_zero(*reserved, bytes));
    }
  }
  reconcile(api, pool);
}

bool StreamPools::trim(const char *api, int device, const Pool *kept) noexcept try {
  ledger::Account &account = ledger_.account(device);
  ledger::Transit transit(account.transits());
  const std::uint64_t before = account.charged();
  for (const PoolRef &pool : pools_of(device)) {
    if (pool.get() != kept) {
      trim_one(api, *pool, UINT64_MAX);
    }
  }
  const bool released = account.charged() < before;
  if (released) {
    transit.hold();
  }
  return released;
} catch (...) {  // no host memory to list the pools
  return false;
}

bool StreamPools::trim_by(const char *api, Pool &pool, std::uint64_t bytes) noexcept {
  const ledger::Account &account = ledger_.account(pool.device);
  const std::uint64_t before = account.charged();
  trim_one(api, pool, bytes);
  return account.charged() < before;
}

void StreamPools::trim_by(const char *api, int device, FunctionRef<std::uint64_t()> missing) noexcept try {
  for (const PoolRef &pool : pools_of(device)) {
    const std::uint64_t bytes = missing();
    if (bytes == 0) {
      return;
    }
    trim_one(api, *pool, bytes);
    if (pool->graphs == nullptr && missing() != 0) {  // the free chunks are larger than `bytes`
      trim_one(api, *pool, UINT64_MAX);
    }
  }
} catch (...) {  // no host memory to list the pools
}

bool StreamPools::can_reach_cap(const Pool &pool) {
  Guard guard(mutex_);
  return leaves_its_cap(pool, ledger_.account(pool.device).available());
}

bool StreamPools::leaves_its_cap(const Pool &pool, std::uint64_t left) {
  return pool.cap != 0 && minus_or_zero(pool.cap, pool.charged_) <= left;
}

std::uint64_t StreamPools::idle(int device) noexcept try {
  std::uint64_t bytes = 0;
  std::uint64_t most = order_mark(device);
  {
    Guard guard(mutex_);
    most -= std::min(most, passed_[device]);
  }
  for (const PoolRef &pool : most == 0 ? std::vector<PoolRef>() : pools_of(device)) {
    if (const Asking asking(*this, *pool); asking) {
      bytes += pool->idle_bytes();
    }
  }
  Guard guard(mutex_);
  return std::min(bytes, most) + (orphaned_[device] - released_[device]);
} catch (...) {
  return 0;
}

void StreamPools::freed_in_order(int device, std::uint64_t bytes) {
  freed_in_order_[device].fetch_add(bytes + kLargestStep);
}

void StreamPools::note_passed(int device, std::uint64_t mark) {
  Guard guard(mutex_);
  passed_[device] = std::max(passed_[device], mark);
}

void StreamPools::reconcile_all(const char *api, int device) noexcept try {
  for (const PoolRef &pool : pools_of(device)) {
    reconcile(api, *pool);
  }
} catch (...) {  // the charge stays
}

void StreamPools::record(const char *api, int device, std::uint64_t falling) noexcept {
  events::Sample event{device, api, 0, 0};
  const ReentrantGate turn(recording_);
  {
    Guard guard(mutex_);
    // Leaves out the bounds of calls in flight, which the driver may still refuse.
    const std::uint64_t kept = minus_or_zero(charged_[device], called_[device] + falling);
    if (kept == recorded_[device]) {
      return;
    }
    event.before = std::exchange(recorded_[device], kept);
    event.pool_reserved = kept;
  }
  journal_.record(event);
  if (event.pool_reserved > event.before) {
    ledger_.account(device).publish_peak();  // a graph's memory may be trimmed before anything is published
  }
}

}  // namespace ration::policy
