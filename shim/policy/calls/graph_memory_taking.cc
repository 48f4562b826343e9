// How graphs take memory: at a launch or an upload, or, with other drivers, at the instantiation.
#include <algorithm>
#include <utility>

#include "base/saturating.h"
#include "policy/calls/graph_memory.h"

#include "policy/calls/call_parts.h"

namespace ration::policy {
namespace {

using driver::real;
using Part = GraphMemory::Part;
using Exec = GraphMemory::Exec;
using Call = GraphMemory::Call;

// Memory that a launch has taken belongs to its graph, and cannot be given back by itself.
CUresult keep(CUdeviceptr) {
  return CUDA_ERROR_NOT_PERMITTED;
}

// Instantiates a graph with one block on the device, if it can, and runs `see` while that graph exists.
void instantiate_block(int device, std::uint64_t bytes, FunctionRef<void()> see) {
  if (!real.cuGraphCreate.present() || !real.cuGraphDestroy.present() || !real.cuGraphAddMemAllocNode.present() ||
      !real.cuGraphInstantiateWithFlags.present() || !real.cuGraphExecDestroy.present()) {
    return;
  }
  const RelaxedCapture relaxed;
  CUgraph graph = nullptr;
  CUgraphNode node = nullptr;
  CUgraphExec exec = nullptr;
  CUDA_MEM_ALLOC_NODE_PARAMS params = {};
  params.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  params.poolProps.location = {CU_MEM_LOCATION_TYPE_DEVICE, device};
  params.bytesize = bytes;
  if (real.cuGraphCreate(&graph, 0) != CUDA_SUCCESS) {
    return;
  }
  if (real.cuGraphAddMemAllocNode(&node, graph, nullptr, 0, &params) == CUDA_SUCCESS &&
      real.cuGraphInstantiateWithFlags(&exec, graph, 0) == CUDA_SUCCESS) {
    see();
    real.cuGraphExecDestroy(exec);
  }
  real.cuGraphDestroy(graph);
}

std::uint64_t bound_of(const CallParts &parts, const Part &part) {
  return part.pool != nullptr
             ? std::min(parts.stream_pools.upper_bound(*part.pool, part.need.bytes), part.enough.load())
             : part.need.bytes;
}

// The bytes of blocks that an earlier launch of the graph has left.
std::uint64_t live_of(const CallParts &parts, const Exec &exec, const Part &part) {
  std::uint64_t bytes = 0;
  for (const GraphNeeds::Left &left : exec.needs.left) {
    if (left.device == part.need.device && part.left_bytes != 0) {
      const std::optional<Block> block = parts.books.blocks.find(left.address);
      bytes += block && block->pool == part.pool ? StreamPools::whole_units(block->size) : 0;
    }
  }
  return bytes;
}

// The bytes of the pool that the graph cannot have. `launches`: what the launch will leave is counted in the pool
// already. The graph's own earlier blocks do not count, because those to come take their place. They are counted last,
// so that blocks which another thread frees meanwhile count as kept.
std::uint64_t kept_by_others(const CallParts &parts, const Exec &exec, const Part &part, const StreamPools::Call &call,
                             bool launches) {
  const std::uint64_t live = part.pool->graphs->live_bytes.load();
  const std::uint64_t own = (launches ? part.left_bytes : 0) + live_of(parts, exec, part);
  return minus_or_zero(live, own) + parts.stream_pools.relied_by_others(*part.pool, call);
}

// By how much the pool, which has `held`, must grow for the graph. Rounded only once, because a pool grows for all that
// is in it.
std::uint64_t lacking(const CallParts &parts, const Part &part, std::uint64_t kept, std::uint64_t held) {
  const auto with_kept = [=](std::uint64_t bytes) { return plus_or_most(bytes, kept); };
  std::uint64_t needed = with_kept(bound_of(parts, part));
  if (needed > held) {
    needed = std::min(needed, parts.stream_pools.upper_bound(*part.pool, with_kept(part.need.bytes)));
  }
  return needed > held ? parts.stream_pools.upper_bound(*part.pool, needed - held) : 0;
}

// Whether the driver refuses the launch however much memory there is: its blocks exist already, or those that it frees
// do not.
bool is_wrong(const CallParts &parts, const Exec &exec) {
  const auto &frees = exec.needs.frees;
  return (!exec.frees_at_launch && std::any_of(exec.parts.begin(), exec.parts.end(),
                                               [&](const auto &part) { return live_of(parts, exec, *part) != 0; })) ||
         std::any_of(frees.begin(), frees.end(),
                     [&](CUdeviceptr address) { return !parts.books.blocks.find(address); });
}

// A launch that fails on a full device leaves all that was free in the driver's pool, where no other call gets it (an
// H100, driver 580). So a launch that must fail is not tried.
bool must_fail(const CallParts &parts, const StreamPools::Pool &pool, std::uint64_t bound) {
  const std::uint64_t idle = pool.reserved_bytes();
  return parts.device_free(pool.device).value_or(UINT64_MAX) < minus_or_zero(bound, idle);
}

// Takes the memory by an upload, and counts what is idle in the pool as the graph's. nullopt if it does not fit that
// way.
std::optional<CUresult> take_shared(const CallParts &parts, const Call &of, const Exec &exec, Part &part,
                                    std::uint64_t bound, DriverCall rest) {
  StreamPools::Pool &pool = *part.pool;
  // Graphs share memory in the order of one stream; in different streams they may run at the same time.
  if (pool.graphs->stream.load() != of.stream || !real.cuGraphUpload.present()) {
    return std::nullopt;
  }
  pool.graphs->begin_relying();
  StreamPools::Call call = parts.stream_pools.share(pool, bound);
  const std::uint64_t held = pool.reserved_bytes();
  const std::uint64_t kept = kept_by_others(parts, exec, part, call, of.launches);
  bool uploaded = false;
  CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
  const std::uint64_t more = lacking(parts, part, kept, held);
  Contexts::Current where;
  where.device = part.need.device;
  if (kept < held && parts.admission.has_room({of.api, more, more, nullptr}, where, Room::Patience::briefly) &&
      parts.stream_pools.extend(pool, call, more)) {
    result = real.cuGraphUpload(of.exec, of.stream);
    uploaded = result == CUDA_SUCCESS;
    if (uploaded && pool.reserved_bytes() > held + call.charged) {
      result = CUDA_ERROR_OUT_OF_MEMORY;  // not all of it was idle; what was taken goes at the trim that follows
    }
    if (result == CUDA_SUCCESS) {
      result = rest();
    }
  }
  parts.stream_pools.finish_and_release(pool, call, uploaded);
  pool.graphs->end_relying();
  parts.stream_pools.charge_missing(of.api, pool);
  return result != CUDA_ERROR_OUT_OF_MEMORY ? std::optional(result) : std::nullopt;
}

CUresult take_part(const CallParts &parts, const Call &of, const Exec &exec, Part &part, DriverCall rest) {
  StreamPools::Pool *const pool = part.pool.get();
  const int device = part.need.device;
  const std::uint64_t bound = bound_of(parts, part);
  if (pool != nullptr && of.exec != nullptr && parts.account(device).available() < bound) {
    if (of.launches && is_wrong(parts, exec)) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    if (const std::optional<CUresult> shared = take_shared(parts, of, exec, part, bound, rest)) {
      return *shared;
    }
  }
  CUresult other = CUDA_SUCCESS;  // an answer that has nothing to do with memory
  const auto act = [&](Obtained &got) {
    got.bytes = bound;
    CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
    if (pool == nullptr) {
      result = rest();
    } else if (!must_fail(parts, *pool, bound)) {
      const StreamPools::Call call = parts.stream_pools.begin(*pool, bound);
      result = rest();
      parts.stream_pools.finish(*pool, call, result == CUDA_SUCCESS);
    }
    if (result == CUDA_ERROR_OUT_OF_MEMORY && of.launches && is_wrong(parts, exec)) {
      result = CUDA_ERROR_INVALID_VALUE;
    }
    if (result == CUDA_SUCCESS || result == CUDA_ERROR_OUT_OF_MEMORY) {
      return result;
    }
    other = result;
    return CUDA_ERROR_INVALID_CONTEXT;  // not counted as a failed allocation
  };
  Request request{of.api, part.need.bytes, bound, nullptr};
  request.kind = events::Kind::pool;
  request.exact = pool == nullptr;
  Contexts::Current where;
  where.device = device;
  Obtained obtained;
  std::optional<ledger::Transit> surplus;
  const CUresult result =
      parts.admission.admit(request, where, act, keep, obtained, request.exact ? nullptr : &surplus);
  if (pool != nullptr) {
    parts.stream_pools.charge_missing(of.api, *pool);
  }
  return other != CUDA_SUCCESS ? other : result;
}

// Runs the driver's call while what the parts from `next` on take is reserved.
CUresult take(const CallParts &parts, const Call &of, Exec &exec, std::size_t next, DriverCall call) {
  if (next == exec.parts.size()) {
    return call();
  }
  const auto rest = [&] { return take(parts, of, exec, next + 1, call); };
  return take_part(parts, of, exec, *exec.parts[next], rest);
}

// A launch for which nothing is reserved, because its graph has all that it needs. As long as it lasts, we do not trim,
// and nothing is released that other launches reserved and this one may need.
class Relying {
 public:
  Relying(const CallParts &parts, Exec &exec, bool launches) : pools_(parts.stream_pools), exec_(exec) {
    calls_.reserve(exec.parts.size());
    can_ = true;
    for (const std::unique_ptr<Part> &part : exec.parts) {
      part->pool->graphs->begin_relying();
      calls_.push_back(pools_.share(*part->pool, bound_of(parts, *part)));
      const std::uint64_t kept = kept_by_others(parts, exec, *part, calls_.back(), launches);
      can_ = can_ && lacking(parts, *part, kept, pools_.latest_figure(*part->pool)) == 0;
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
  // `may_have_grown`: the pool may have grown, because another graph took memory or memory was lost meanwhile.
  void end(bool may_have_grown = false) {
    for (std::size_t i = 0; i < calls_.size(); ++i) {
      pools_.finish_and_release(*exec_.parts[i]->pool, calls_[i], may_have_grown);
      exec_.parts[i]->pool->graphs->end_relying();
    }
    calls_.clear();
  }

 private:
  StreamPools &pools_;
  Exec &exec_;
  std::vector<StreamPools::Call> calls_;
  bool can_ = false;
};

}  // namespace

CUresult GraphMemory::instantiate_as(const Call &of, Exec &exec, bool uploads, DriverCall call) {
  const bool at_run = StreamPools::can_tell_of_graphs() && !uploads;  // the memory may be taken at a run
  if (exec.parts.empty() || (at_run && takes_at_run(of.api, exec))) {
    return call();
  }
  const std::uint64_t before = at_run ? exec.parts.front()->pool->reserved_bytes() : 0;
  const CUresult result = take(parts_, of, exec, 0, call);
  if (result == CUDA_SUCCESS && at_run) {
    learn(*exec.parts.front()->pool, exec.parts.front()->need.bytes, before);
  }
  return result;
}

// If there was nothing to share, a pool that has not grown shows that the memory is taken later.
void GraphMemory::learn(const StreamPools::Pool &pool, std::uint64_t bytes, std::uint64_t before) noexcept {
  const std::uint64_t now = pool.reserved_bytes();
  Taken unknown = Taken::unknown;
  if (now > before) {
    taken_.compare_exchange_strong(unknown, Taken::instantiating);  // or a launch in another thread, which knew more
  } else if (before < bytes) {
    taken_.compare_exchange_strong(unknown, Taken::running);
  }
}

bool GraphMemory::takes_at_run(const char *api, const Exec &exec) {
  const auto lacks_room = [this](const std::unique_ptr<Part> &part) {
    const std::uint64_t bound = bound_of(parts_, *part);
    return parts_.account(part->need.device).available() < bound || must_fail(parts_, *part->pool, bound);
  };
  if (taken_.load() == Taken::unknown && std::any_of(exec.parts.begin(), exec.parts.end(), lacks_room)) {
    probe(api, *exec.parts.front());
  }
  return taken_.load() == Taken::running;
}

// Instantiates a graph of ours while what it may take is reserved; if that cannot be reserved, nothing is learnt. The
// graph has more than the pool, so that nothing of the pool can be shared.
void GraphMemory::probe(const char *api, Part &part) {
  StreamPools::Pool &pool = *part.pool;
  const std::uint64_t before = pool.reserved_bytes();
  const std::uint64_t bound = parts_.stream_pools.upper_bound(pool, before + 1);
  Contexts::Current where;
  where.device = part.need.device;
  const bool room = parts_.admission.has_room({api, bound, bound, nullptr}, where, Room::Patience::briefly) &&
                    !must_fail(parts_, pool, bound);
  const std::optional<StreamPools::Call> call =
      room ? parts_.stream_pools.reserve(pool, bound, ledger::Effort::kReclaimFromDead) : std::nullopt;
  if (!call) {
    return;
  }
  instantiate_block(part.need.device, before + 1, [&] { learn(pool, before + 1, before); });
  if (pool.reserved_bytes() > before) {
    pool.graphs->trim();
  }
  parts_.stream_pools.finish_and_release(pool, *call, true);
  parts_.stream_pools.charge_missing(api, pool);
}

CUresult GraphMemory::run(const Call &of, Exec &exec, DriverCall call) {
  if (Relying relying(parts_, exec, of.launches); relying) {
    const CUresult result = call();
    const bool relied = relying.still_can();
    relying.end(!relied);
    for (std::size_t i = 0; !relied && i < exec.parts.size(); ++i) {  // another graph ran, or memory was lost meanwhile
      parts_.stream_pools.charge_missing(of.api, *exec.parts[i]->pool);
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
  const CUresult result = take(parts_, of, exec, 0, marked);
  for (std::size_t i = 0; result == CUDA_SUCCESS && i < losses.size(); ++i) {
    Part &part = *exec.parts[i];
    const std::uint64_t reserved = part.pool->reserved_bytes();
    if (part.pool->graphs->losses.load() == losses[i]) {  // no trim came before that figure
      part.enough.store(reserved);
    }
    part.losses_seen.store(losses[i]);
  }
  return result;
}

}  // namespace ration::policy
