#include "policy/calls/graph_memory.h"

#include <algorithm>
#include <utility>

#include "policy/calls/call_parts.h"

namespace ration::policy {
GraphMemory::ExecRef GraphMemory::describe(GraphNeeds needs, bool frees_at_launch) {
  auto exec = std::make_shared<Exec>();
  exec->frees_at_launch = frees_at_launch;
  exec->number = last_number_.fetch_add(1) + 1;
  for (const GraphNeed &need : needs.at_once) {
    const Device *device = parts_.devices.find(need.device);
    if (device == nullptr || need.bytes == 0) {
      continue;
    }
    auto part = std::make_unique<Part>();
    part->need = need;
    if (StreamPools::can_tell_of_graphs()) {
      part->pool = parts_.stream_pools.of_graphs(need.device, device->handle);
    }
    for (const GraphNeeds::Left &left : needs.left) {
      part->left_bytes += left.device == need.device ? StreamPools::whole_units(left.requested) : 0;
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
  execs_.erase(node.key());  // an earlier one, whose end was not seen
  execs_.insert(std::move(node));
  count_.store(execs_.size(), std::memory_order_relaxed);
}

void GraphMemory::note_allocation() noexcept {
  parts_.stream_pools.note_graph_allocation();
}

CUresult GraphMemory::instantiate(const char *api, CUgraph graph, std::uint64_t flags, CUgraphExec *handle,
                                  DriverCall call) {
  GraphNeeds needs = parts_.stream_pools.graphs_allocate() ? graph_needs(graph) : GraphNeeds();
  if (needs.at_once.empty() && needs.frees.empty()) {
    return call();
  }
  if (parts_.devices.limit_unknown()) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  const ExecRef exec = describe(std::move(needs), (flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH) != 0);
  const bool uploads = (flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD) != 0;
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

CUresult GraphMemory::run(Run kind, const char *api, CUgraphExec handle, CUstream stream, DriverCall call) {
  const ExecRef exec = find(handle);
  if (exec == nullptr || (parts_.captures.running() && is_captured(stream))) {
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

void GraphMemory::begin_launch(const Exec &exec) noexcept {
  for (const std::unique_ptr<Part> &part : exec.parts) {
    if (part->pool != nullptr) {
      part->pool->graphs->live_bytes.fetch_add(part->left_bytes);
    }
  }
}

void GraphMemory::end_launch(const char *api, const Exec &exec, bool success) {
  for (std::size_t i = 0; success && i < exec.needs.frees.size(); ++i) {
    parts_.books.end(parts_.books.blocks, api, exec.needs.frees[i], [](const Block *) { return CUDA_SUCCESS; });
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
        const Block block{left.requested, left.device, part->pool->graphs->owner, events::Kind::pool, true, part->pool};
        parts_.books.enter(parts_.books.blocks, request, block, left.address, 0);
      }
    }
  }
}

// The executable graph may have other nodes afterwards.
CUresult GraphMemory::update(CUgraphExec handle, CUgraph graph, DriverCall call) {
  const CUresult result = call();
  const ExecRef exec = result == CUDA_SUCCESS && StreamPools::can_tell_of_graphs() ? find(handle) : nullptr;
  if (exec == nullptr) {  // or it stays charged as it was instantiated, until its end
    return result;
  }
  ExecRef updated = describe(graph_needs(graph), exec->frees_at_launch);
  Guard guard(mutex_);
  if (const auto found = execs_.find(handle); found != execs_.end() && found->second == exec) {
    found->second.swap(updated);
  }
  return result;
}

// The graph's record is removed before the driver's call: afterwards another thread may get the same handle.
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
      parts_.account(part->need.device).release(part->need.bytes);
    }
  }
  return result;
}

CUresult GraphMemory::trim(const char *api, CUdevice device, DriverCall call) {
  const Device *known = parts_.devices.find_handle(device);
  if (known == nullptr || !StreamPools::can_tell_of_graphs() || !parts_.stream_pools.graphs_allocate()) {
    return call();
  }
  const StreamPools::PoolRef pool = parts_.stream_pools.of_graphs(known->ordinal, device);
  const CUresult result = pool->graphs->trim();
  parts_.stream_pools.charge_missing(api, *pool);
  return result;
}

}  // namespace ration::policy
