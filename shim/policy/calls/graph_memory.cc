#include "policy/calls/graph_memory.h"

#include <algorithm>
#include <utility>

namespace ration::policy {
namespace {

using driver::real;

// What a launch has taken belongs to its graph; it cannot be given back by itself.
CUresult keep(CUdeviceptr) {
  return CUDA_ERROR_NOT_PERMITTED;
}

}  // namespace

class GraphMemory::Relying {
 public:
  explicit Relying(Exec &exec) : exec_(exec) {
    for (const std::unique_ptr<Part> &part : exec.parts) {
      part->pool->graphs->relying.fetch_add(1);
    }
    can_ = still_can();
  }
  ~Relying() { end(); }
  Relying(const Relying &) = delete;
  Relying &operator=(const Relying &) = delete;
  explicit operator bool() const { return can_; }

  bool still_can() const {
    return std::all_of(exec_.parts.begin(), exec_.parts.end(), [this](const std::unique_ptr<Part> &part) {
      const StreamPools::Graphs &graphs = *part->pool->graphs;
      return graphs.latest.load() == exec_.number && graphs.losses.load() == part->losses_seen.load();
    });
  }
  void end() {
    if (!std::exchange(ended_, true)) {
      for (const std::unique_ptr<Part> &part : exec_.parts) {
        part->pool->graphs->relying.fetch_sub(1);
      }
    }
  }

 private:
  Exec &exec_;
  bool can_ = false;
  bool ended_ = false;
};

GraphMemory::ExecRef GraphMemory::describe(const std::vector<GraphNeed> &needs) {
  auto exec = std::make_shared<Exec>();
  exec->number = last_number_.fetch_add(1) + 1;
  for (const GraphNeed &need : needs) {
    const Device *device = devices_.find(need.device);
    if (device == nullptr || need.bytes == 0) {
      continue;
    }
    auto part = std::make_unique<Part>();
    part->need = need;
    if (StreamPools::can_tell_of_graphs()) {
      part->pool = stream_pools_.of_graphs(need.device, device->handle);
    }
    part->losses_seen = UINT64_MAX;
    exec->parts.push_back(std::move(part));
  }
  return exec;
}

GraphMemory::ExecRef GraphMemory::find(CUgraphExec handle) {
  Guard guard(mutex_);
  const auto found = execs_.find(handle);
  return found != execs_.end() ? found->second : nullptr;
}

void GraphMemory::enter(Execs::node_type node) noexcept {
  Guard guard(mutex_);
  execs_.erase(node.key());  // its end was not seen
  execs_.insert(std::move(node));
  count_.store(execs_.size(), std::memory_order_relaxed);
}

CUresult GraphMemory::instantiate(const char *api, CUgraph graph, bool uploads, CUgraphExec *handle, DriverCall call) {
  const std::vector<GraphNeed> needs = stream_pools_.graphs_allocate() ? graph_needs(graph) : std::vector<GraphNeed>();
  if (needs.empty()) {
    return call();
  }
  if (admission_.limit_unknown()) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  const ExecRef exec = describe(needs);
  Execs made;  // before the driver's call, so that nothing can fail after it
  made[nullptr] = exec;
  Execs::node_type node = made.extract(made.begin());
  const CUresult result = instantiate_as({api, nullptr, nullptr}, *exec, uploads, call);
  if (result == CUDA_SUCCESS && !exec->parts.empty()) {
    node.key() = *handle;
    enter(std::move(node));
  }
  return result;
}

CUresult GraphMemory::instantiate_as(const Call &of, Exec &exec, bool uploads, DriverCall call) {
  const bool tells = StreamPools::can_tell_of_graphs();
  if (exec.parts.empty() || (tells && !uploads && taken_.load() == Taken::running)) {
    return call();
  }
  const std::uint64_t before = tells ? StreamPools::reserved_bytes(*exec.parts.front()->pool) : 0;
  const CUresult result = take(of, exec, 0, call);
  if (result == CUDA_SUCCESS) {
    exec.until_the_end = !tells;
    if (tells && !uploads) {
      learn(exec, before);
    }
  }
  return result;
}

// Where there was nothing to share, a pool that has not grown says that the memory comes later.
void GraphMemory::learn(Exec &exec, std::uint64_t before) noexcept {
  const Part &part = *exec.parts.front();
  const std::uint64_t now = StreamPools::reserved_bytes(*part.pool);
  if (now > before) {
    taken_.store(Taken::instantiating);
  } else if (before < part.need.bytes && taken_.load() == Taken::unknown) {
    taken_.store(Taken::running);
  }
}

CUresult GraphMemory::run(const char *api, CUgraphExec handle, CUstream stream, DriverCall call) {
  const ExecRef exec = find(handle);
  if (exec == nullptr || exec->until_the_end || (captures_.running() && is_captured(stream))) {
    return call();
  }
  if (Relying relying(*exec); relying) {
    const CUresult result = call();
    const bool relied = relying.still_can();
    relying.end();
    for (const std::unique_ptr<Part> &part : exec->parts) {
      if (!relied) {  // another graph ran, or memory was lost meanwhile
        settle(api, *part->pool);
      }
    }
    return result;
  }
  std::vector<std::uint64_t> losses;
  for (const std::unique_ptr<Part> &part : exec->parts) {
    StreamPools::Graphs &graphs = *part->pool->graphs;
    losses.push_back(graphs.losses.load());
    graphs.latest.store(exec->number);
  }
  const CUresult result = take({api, handle, stream}, *exec, 0, call);
  for (std::size_t i = 0; result == CUDA_SUCCESS && i < losses.size(); ++i) {
    exec->parts[i]->losses_seen.store(losses[i]);
  }
  return result;
}

CUresult GraphMemory::take(const Call &of, Exec &exec, std::size_t next, DriverCall call) {
  if (next == exec.parts.size()) {
    return call();
  }
  const auto rest = [&] { return take(of, exec, next + 1, call); };
  return take_part(of, *exec.parts[next], rest);
}

CUresult GraphMemory::take_part(const Call &of, Part &part, DriverCall rest) {
  StreamPools::Pool *const pool = part.pool.get();
  const int device = part.need.device;
  const std::uint64_t bound = pool != nullptr ? stream_pools_.upper_bound(*pool, part.need.bytes) : part.need.bytes;
  if (pool != nullptr && of.exec != nullptr && ledger_.account(device).available() < bound) {
    if (const std::optional<CUresult> shared = take_shared(of, part, bound, rest)) {
      return *shared;
    }
  }
  CUresult other = CUDA_SUCCESS;  // an answer that has nothing to do with memory
  const auto act = [&](Obtained &got) {
    got.bytes = bound;
    CUresult result = CUDA_SUCCESS;
    if (pool != nullptr && must_fail(*pool, bound)) {
      return CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (pool != nullptr) {
      const StreamPools::Call call = stream_pools_.begin(*pool, bound);
      result = rest();
      stream_pools_.finish(*pool, call, result == CUDA_SUCCESS);
    } else {
      result = rest();
    }
    if (result == CUDA_SUCCESS || result == CUDA_ERROR_OUT_OF_MEMORY) {
      return result;
    }
    other = result;
    return CUDA_ERROR_INVALID_CONTEXT;  // no allocation that failed
  };
  Request request{of.api, part.need.bytes, bound, nullptr};
  request.kind = events::Kind::pool;
  request.exact = pool == nullptr;
  Contexts::Current where;
  where.device = device;
  Obtained obtained;
  std::optional<ledger::Transit> settling;
  const CUresult result =
      admission_.admit(request, where, act, keep, obtained, request.exact ? nullptr : &settling);
  if (pool != nullptr) {
    settle(of.api, *pool);
  }
  return other != CUDA_SUCCESS ? other : result;
}

// On a full device a launch leaves all that was free in the driver's pool, where nobody gets it (an H100, driver 580), so
// it is not tried where it must fail.
bool GraphMemory::must_fail(const StreamPools::Pool &pool, std::uint64_t bound) {
  if (const Contexts::Current here = admission_.current(); here.error != CUDA_SUCCESS || here.device != pool.device) {
    return false;
  }
  const std::uint64_t idle = StreamPools::reserved_bytes(pool);
  const RelaxedCapture relaxed;
  return really_free().value_or(UINT64_MAX) < bound - std::min(bound, idle);
}

std::optional<CUresult> GraphMemory::take_shared(const Call &of, Part &part, std::uint64_t bound, DriverCall rest) {
  StreamPools::Pool &pool = *part.pool;
  const std::uint64_t held = StreamPools::reserved_bytes(pool);
  if (held == 0 || !real.cuGraphUpload.present()) {
    return std::nullopt;
  }
  const std::uint64_t lacking = bound - std::min(bound, held);
  const std::optional<StreamPools::Call> call =
      lacking == 0 ? stream_pools_.begin(pool, 0)
                   : stream_pools_.reserve(pool, lacking, ledger::Effort::kImmediate);
  if (!call) {
    return std::nullopt;
  }
  const CUresult uploaded = real.cuGraphUpload(of.exec, of.stream);
  stream_pools_.settle(pool, *call, uploaded == CUDA_SUCCESS);
  const std::uint64_t missing = stream_pools_.reconcile(of.api, pool);
  if (missing > 0 && ledger_.account(pool.device).reserve(missing) != ledger::ReserveOutcome::granted) {
    stream_pools_.trim(of.api, pool.device);  // it was not idle
    settle(of.api, pool);
    return std::nullopt;
  }
  if (missing > 0) {
    stream_pools_.add(of.api, pool, missing);
  }
  return uploaded == CUDA_SUCCESS ? std::optional(rest()) : std::nullopt;
}

void GraphMemory::settle(const char *api, StreamPools::Pool &pool) noexcept {
  if (const std::uint64_t missing = stream_pools_.reconcile(api, pool); missing > 0) {
    ledger_.account(pool.device).charge(missing);
    stream_pools_.add(api, pool, missing);
  }
}

// The graph behind it may have other nodes now.
CUresult GraphMemory::update(CUgraphExec handle, CUgraph graph, DriverCall call) {
  const CUresult result = call();
  const ExecRef exec = result == CUDA_SUCCESS ? find(handle) : nullptr;
  if (exec == nullptr || exec->until_the_end) {
    return result;
  }
  ExecRef updated = describe(graph_needs(graph));
  Guard guard(mutex_);
  if (const auto found = execs_.find(handle); found != execs_.end() && found->second == exec) {
    found->second.swap(updated);
  }
  return result;
}

// Out of the books first: afterwards another thread may get the same handle.
CUresult GraphMemory::destroy(CUgraphExec handle, DriverCall call) {
  Execs::node_type node;
  {
    Guard guard(mutex_);
    node = execs_.extract(handle);
    count_.store(execs_.size(), std::memory_order_relaxed);
  }
  if (node.empty()) {
    return call();
  }
  const CUresult result = call();
  if (result != CUDA_SUCCESS) {
    enter(std::move(node));
    return result;
  }
  if (node.mapped()->until_the_end) {
    for (const std::unique_ptr<Part> &part : node.mapped()->parts) {
      ledger_.account(part->need.device).release(part->need.bytes);
    }
  }
  return result;
}

CUresult GraphMemory::trim(const char *api, CUdevice device, DriverCall call) {
  const CUresult result = call();
  if (result == CUDA_SUCCESS && StreamPools::can_tell_of_graphs() && stream_pools_.graphs_allocate()) {
    const StreamPools::PoolRef pool = stream_pools_.of_graphs(devices_.ordinal_of(device), device);
    pool->graphs->losses.fetch_add(1);
    settle(api, *pool);
  }
  return result;
}

}  // namespace ration::policy
