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

// While it lasts no trim of ours comes, and of what other launches reserved nothing is released that this one may need.
class GraphMemory::Relying {
 public:
  Relying(GraphMemory &memory, Exec &exec, bool launches) : pools_(memory.stream_pools_), exec_(exec) {
    calls_.reserve(exec.parts.size());
    can_ = true;
    for (const std::unique_ptr<Part> &part : exec.parts) {
      const std::uint64_t bound = memory.bound_of(*part);
      StreamPools::begin_relying(*part->pool->graphs);
      calls_.push_back(pools_.share(*part->pool, bound));
      can_ = can_ && pools_.idle_for(*part->pool, calls_.back(), part->live_of_others(launches)) >= bound;
    }
    can_ = can_ && still_can();
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
  // `may_have_grown`: the pool, by what another graph took or what was lost meanwhile.
  void end(bool may_have_grown = false) {
    for (std::size_t i = 0; i < calls_.size(); ++i) {
      pools_.settle(*exec_.parts[i]->pool, calls_[i], may_have_grown);
      StreamPools::end_relying(*exec_.parts[i]->pool->graphs);
    }
    calls_.clear();
  }

 private:
  StreamPools &pools_;
  Exec &exec_;
  std::vector<StreamPools::Call> calls_;
  bool can_ = false;
};

GraphMemory::ExecRef GraphMemory::describe(GraphNeeds needs) {
  auto exec = std::make_shared<Exec>();
  exec->number = last_number_.fetch_add(1) + 1;
  for (const GraphNeed &need : needs.at_once) {
    const Device *device = devices_.find(need.device);
    if (device == nullptr || need.bytes == 0) {
      continue;
    }
    auto part = std::make_unique<Part>();
    part->need = need;
    if (StreamPools::can_tell_of_graphs()) {
      part->pool = stream_pools_.of_graphs(need.device, device->handle);
    }
    for (const GraphNeeds::Left &left : needs.left) {
      part->left_bytes += left.device == need.device ? left.requested : 0;
    }
    exec->parts.push_back(std::move(part));
  }
  exec->needs = std::move(needs);
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
  GraphNeeds needs = stream_pools_.graphs_allocate() ? graph_needs(graph) : GraphNeeds();
  if (needs.at_once.empty() && needs.frees.empty()) {
    return call();
  }
  if (admission_.limit_unknown()) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  const ExecRef exec = describe(std::move(needs));
  Execs made;  // before the driver's call, so that nothing can fail after it
  made[nullptr] = exec;
  Execs::node_type node = made.extract(made.begin());
  const CUresult result = instantiate_as({api, nullptr, nullptr, false}, *exec, uploads, call);
  if (result == CUDA_SUCCESS) {
    node.key() = *handle;
    enter(std::move(node));
  }
  return result;
}

CUresult GraphMemory::instantiate_as(const Call &of, Exec &exec, bool uploads, DriverCall call) {
  const bool at_run = StreamPools::can_tell_of_graphs() && !uploads;  // or may be
  if (exec.parts.empty() || (at_run && taken_.load() == Taken::running)) {
    return call();
  }
  const std::uint64_t before = at_run ? StreamPools::reserved_bytes(*exec.parts.front()->pool) : 0;
  const CUresult result = take(of, exec, 0, call);
  if (result == CUDA_SUCCESS && at_run) {
    learn(exec, before);
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

CUresult GraphMemory::run(Run kind, const char *api, CUgraphExec handle, CUstream stream, DriverCall call) {
  const ExecRef exec = find(handle);
  if (exec == nullptr || (captures_.running() && is_captured(stream))) {
    return call();
  }
  const Call of{api, handle, stream, kind == Run::launch};
  if (of.launches) {
    begin_launch(*exec);
  }
  const CUresult result = StreamPools::can_tell_of_graphs() ? run(of, *exec, call) : call();
  if (of.launches) {
    end_launch(api, *exec, result == CUDA_SUCCESS);
  }
  return result;
}

CUresult GraphMemory::run(const Call &of, Exec &exec, DriverCall call) {
  if (Relying relying(*this, exec, of.launches); relying) {
    const CUresult result = call();
    const bool relied = relying.still_can();
    relying.end(!relied);
    for (std::size_t i = 0; !relied && i < exec.parts.size(); ++i) {  // another graph ran, or memory was lost meanwhile
      stream_pools_.charge_missing(of.api, *exec.parts[i]->pool);
    }
    return result;
  }
  std::vector<std::uint64_t> losses;
  for (const std::unique_ptr<Part> &part : exec.parts) {
    StreamPools::Graphs &graphs = *part->pool->graphs;
    losses.push_back(graphs.losses.load());
    graphs.latest.store(exec.number);
  }
  const auto marked = [&] {
    const CUresult result = call();
    for (const std::unique_ptr<Part> &part : exec.parts) {  // before anything reserved for it is released
      part->pool->graphs->latest.store(exec.number);
      part->pool->graphs->stream.store(of.stream);
    }
    return result;
  };
  const CUresult result = take(of, exec, 0, marked);
  for (std::size_t i = 0; result == CUDA_SUCCESS && i < losses.size(); ++i) {
    Part &part = *exec.parts[i];
    const std::uint64_t reserved = StreamPools::reserved_bytes(*part.pool);
    if (part.pool->graphs->losses.load() == losses[i]) {  // no trim came before that figure
      part.enough.store(reserved);
    }
    part.losses_seen.store(losses[i]);
  }
  return result;
}

void GraphMemory::begin_launch(const Exec &exec) noexcept {
  for (const std::unique_ptr<Part> &part : exec.parts) {
    if (part->pool != nullptr) {
      part->pool->graphs->live_bytes.fetch_add(part->left_bytes);
    }
  }
}

void GraphMemory::end_launch(const char *api, const Exec &exec, bool success) {
  for (std::size_t i = 0; success && i < exec.needs.frees.size(); ++i) {
    books_.end(books_.blocks, api, exec.needs.frees[i], [](const Block *) { return CUDA_SUCCESS; });
  }
  for (const std::unique_ptr<Part> &part : exec.parts) {
    if (part->pool == nullptr || part->left_bytes == 0) {
      continue;
    }
    if (!success) {
      part->pool->graphs->live_bytes.fetch_sub(part->left_bytes);
      continue;
    }
    for (const GraphNeeds::Left &left : exec.needs.left) {
      if (left.device == part->need.device) {
        Request request{api, left.requested, left.requested, nullptr};
        request.kind = events::Kind::pool;
        const Block block{left.requested, left.device, books_.no_context, events::Kind::pool, true, part->pool};
        books_.enter(books_.blocks, request, block, left.address, 0);
      }
    }
  }
}

CUresult GraphMemory::take(const Call &of, Exec &exec, std::size_t next, DriverCall call) {
  if (next == exec.parts.size()) {
    return call();
  }
  const auto rest = [&] { return take(of, exec, next + 1, call); };
  return take_part(of, *exec.parts[next], rest);
}

std::uint64_t GraphMemory::bound_of(const Part &part) {
  return part.pool != nullptr ? std::min(stream_pools_.upper_bound(*part.pool, part.need.bytes), part.enough.load())
                              : part.need.bytes;
}

CUresult GraphMemory::take_part(const Call &of, Part &part, DriverCall rest) {
  StreamPools::Pool *const pool = part.pool.get();
  const int device = part.need.device;
  const std::uint64_t bound = bound_of(part);
  if (pool != nullptr && of.exec != nullptr && ledger_.account(device).available() < bound) {
    if (const std::optional<CUresult> shared = take_shared(of, part, bound, rest)) {
      return *shared;
    }
  }
  CUresult other = CUDA_SUCCESS;  // an answer that has nothing to do with memory
  const auto act = [&](Obtained &got) {
    got.bytes = bound;
    const CUresult result = pool != nullptr ? grow(*pool, bound, rest) : rest();
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
  const CUresult result = admission_.admit(request, where, act, keep, obtained, request.exact ? nullptr : &settling);
  if (pool != nullptr) {
    stream_pools_.charge_missing(of.api, *pool);
  }
  return other != CUDA_SUCCESS ? other : result;
}

CUresult GraphMemory::grow(StreamPools::Pool &pool, std::uint64_t bound, DriverCall rest) {
  if (must_fail(pool, bound)) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  const StreamPools::Call call = stream_pools_.begin(pool, bound);
  const CUresult result = rest();
  stream_pools_.finish(pool, call, result == CUDA_SUCCESS);
  return result;
}

// On a full device a launch leaves all that was free in the driver's pool, which no call gets (an H100, driver 580),
// so it is not tried where it must fail.
bool GraphMemory::must_fail(const StreamPools::Pool &pool, std::uint64_t bound) {
  if (const Contexts::Current here = admission_.current(); here.error != CUDA_SUCCESS || here.device != pool.device) {
    return false;
  }
  const std::uint64_t idle = StreamPools::reserved_bytes(pool);
  const RelaxedCapture relaxed;
  return really_free().value_or(UINT64_MAX) < bound - std::min(bound, idle);
}

std::optional<CUresult> GraphMemory::take_shared(const Call &of, Part &part, std::uint64_t bound, DriverCall rest) {
  StreamPools::Graphs &graphs = *part.pool->graphs;
  // Graphs share memory in the order of one stream; in another one they may run beside each other.
  if (graphs.stream.load() != of.stream || !real.cuGraphUpload.present()) {
    return std::nullopt;
  }
  StreamPools::begin_relying(graphs);
  const std::optional<CUresult> result = take_sharing(of, part, bound, rest);
  StreamPools::end_relying(graphs);
  stream_pools_.charge_missing(of.api, *part.pool);
  return result;
}

std::optional<CUresult> GraphMemory::take_sharing(const Call &of, Part &part, std::uint64_t bound, DriverCall rest) {
  StreamPools::Pool &pool = *part.pool;
  StreamPools::Call call = stream_pools_.share(pool, bound);
  const std::uint64_t held = StreamPools::reserved_bytes(pool);
  const std::uint64_t idle = stream_pools_.idle_for(pool, call, part.live_of_others(of.launches), held);
  const std::uint64_t lacking = idle < bound ? stream_pools_.upper_bound(pool, bound - idle) : 0;
  bool uploaded = false;
  CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
  if (idle > 0 && stream_pools_.extend(pool, call, lacking)) {
    result = real.cuGraphUpload(of.exec, of.stream);
    uploaded = result == CUDA_SUCCESS;
    if (uploaded && StreamPools::reserved_bytes(pool) > held + call.charged) {
      result = CUDA_ERROR_OUT_OF_MEMORY;  // not all of it was idle; what was taken goes at the trim that follows
    }
    if (result == CUDA_SUCCESS) {
      result = rest();
    }
  }
  stream_pools_.settle(pool, call, uploaded);
  return result != CUDA_ERROR_OUT_OF_MEMORY ? std::optional(result) : std::nullopt;
}

// The graph behind it may have other nodes now.
CUresult GraphMemory::update(CUgraphExec handle, CUgraph graph, DriverCall call) {
  const CUresult result = call();
  const ExecRef exec = result == CUDA_SUCCESS && StreamPools::can_tell_of_graphs() ? find(handle) : nullptr;
  if (exec == nullptr) {  // or charged as it was instantiated, until its end
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
  if (!StreamPools::can_tell_of_graphs()) {
    for (const std::unique_ptr<Part> &part : node.mapped()->parts) {
      ledger_.account(part->need.device).release(part->need.bytes);
    }
  }
  return result;
}

CUresult GraphMemory::trim(const char *api, CUdevice device, DriverCall call) {
  const Device *known = devices_.find_handle(device);
  if (known == nullptr || !StreamPools::can_tell_of_graphs() || !stream_pools_.graphs_allocate()) {
    return call();
  }
  const StreamPools::PoolRef pool = stream_pools_.of_graphs(known->ordinal, device);
  const CUresult result = StreamPools::trim_graphs(*pool->graphs);
  stream_pools_.charge_missing(api, *pool);
  return result;
}

}  // namespace ration::policy
