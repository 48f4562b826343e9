// The pool that the graphs of a device share: see StreamPools::Graphs.
#include <algorithm>

#include "policy/contexts/captures.h"
#include "policy/driver_pools/stream_pools.h"

namespace ration::policy {
namespace {

using driver::real;

// In the place of a handle, of which the pool of a device's graphs has none.
constexpr char kGraphTags[ledger::kMaxDevices] = {};
CUmemoryPool graph_tag(int device) {
  return reinterpret_cast<CUmemoryPool>(const_cast<char *>(&kGraphTags[device]));
}

}  // namespace

bool StreamPools::can_tell_of_graphs() {
  return real.cuDeviceGetGraphMemAttribute.present();
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

// A launch counts itself before it looks.
CUresult StreamPools::trim_graphs(Graphs &graphs) {
  graphs.losses.fetch_add(1);
  if (graphs.relying.load() != 0) {
    graphs.owed.store(true);
    if (graphs.relying.load() != 0 || !graphs.owed.exchange(false)) {  // else the last one has ended meanwhile
      return CUDA_SUCCESS;
    }
  }
  if (!real.cuDeviceGraphMemTrim.present()) {
    return CUDA_ERROR_NOT_FOUND;
  }
  const RelaxedCapture relaxed;
  return real.cuDeviceGraphMemTrim(graphs.device);
}

void StreamPools::end_relying(Graphs &graphs) {
  if (graphs.relying.fetch_sub(1) == 1 && graphs.owed.exchange(false)) {
    trim_graphs(graphs);
  }
}

}  // namespace ration::policy
