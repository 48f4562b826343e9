// Launches and uploads of executable graphs. A launch of a graph with memory takes its turn: it waits for all else that
// uses the device's graph memory. Layer: graph_exec.h. Threads: any.
#include "implemented.h"
#include "tests/simcuda/capture.h"
#include "tests/simcuda/graph_exec.h"

namespace simcuda {
namespace {

// A captured launch becomes a child graph, which cannot have memory of its own (cuda.h, cuGraphAddChildGraphNode).
CUresult capture_launch(Stream &stream, const GraphExec &exec) {
  if (exec.graph->allocates) return refuse(stream, CUDA_ERROR_NOT_SUPPORTED);
  std::shared_ptr<Graph> child = copy_of(*exec.graph, Copy::kForProgram);
  child->owned = true;
  publish(child);
  stream.frontier = {add_node(
      *stream.capture->graph,
      {.type = CU_GRAPH_NODE_TYPE_GRAPH, .after = stream.frontier, .child = std::move(child), .captured = true})};
  return CUDA_SUCCESS;
}

using Blocks = std::vector<std::shared_ptr<GraphBlock>>;

// Those of its blocks that an earlier launch left allocated.
Blocks live_blocks(const GraphExec &exec) {
  Blocks live;
  for (const auto &block : exec.plan.left) {
    if (block->live) live.push_back(block);
  }
  return live;
}

bool being_freed(const GraphBlock &block) {
  return driver().allocations.at(block.address).freeing;
}

// Whether the blocks that it frees for another graph are live, and those that it allocates are not or are freed first.
bool blocks_fit(const GraphExec &exec, const Blocks &live) {
  for (const auto &block : live) {
    if (!exec.frees_at_launch() || being_freed(*block)) return false;
  }
  for (const auto &block : exec.plan.expected) {
    if (!block->live || being_freed(*block)) return false;
  }
  return true;
}

// Its last operation keeps the graph, and with it the blocks, until then.
Mark submit_works(Lock &lock, const std::shared_ptr<Stream> &stream, const std::shared_ptr<GraphExec> &exec) {
  std::vector<Mark> after = turn(exec->plan.needs);
  if (!exec->last.reached()) after.push_back(exec->last);
  Mark end = submit(
      lock, stream, Pace::kInstant, [] {}, std::move(after));
  for (const auto &work : exec->plan.works) end = submit(lock, stream, Pace::kDelayed, work);
  if (exec->plan.needs.empty()) return end;
  return submit(lock, stream, Pace::kInstant, [kept = exec]() mutable {
    const Lock in_stream_order(driver().mutex);
    kept.reset();
  });
}

CUresult launch(Lock &lock, const std::shared_ptr<Stream> &stream, const std::shared_ptr<GraphExec> &exec) {
  const Blocks live = live_blocks(*exec);
  if (!blocks_fit(*exec, live)) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult error = provide(exec->plan.needs, live); error != CUDA_SUCCESS) return error;
  for (const auto &block : live) free_graph_block(lock, driver().allocations.find(block->address), stream);
  exec->last = submit_works(lock, stream, exec);
  take_turn(exec->plan.needs, exec->last);
  for (const auto &block : exec->plan.expected) free_by_launch(*block, exec->last);
  for (const auto &block : exec->plan.left) leave_allocated(block, exec->last);
  return CUDA_SUCCESS;
}

CUresult upload(Lock &lock, const std::shared_ptr<Stream> &stream, const std::shared_ptr<GraphExec> &exec) {
  if (const CUresult error = provide(exec->plan.needs, live_blocks(*exec)); error != CUDA_SUCCESS) return error;
  std::vector<Mark> after;
  if (!exec->last.reached()) after.push_back(exec->last);
  const Mark end = submit(
      lock, stream, Pace::kDelayed, [] {}, std::move(after));
  take_turn(exec->plan.needs, end);
  return CUDA_SUCCESS;
}

template <class Body>
CUresult with_exec(CUgraphExec handle, CUstream stream_handle, Body body) {
  Lock lock(driver().mutex);
  std::shared_ptr<Stream> stream;
  if (const CUresult error = find_stream(lock, stream_handle, &stream); error != CUDA_SUCCESS) return error;
  const std::shared_ptr<GraphExec> exec = find_exec(handle);
  if (exec == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult error = may_use(*stream); error != CUDA_SUCCESS) return error;
  return body(lock, stream, exec);
}

}  // namespace

CUresult cuGraphLaunch(CUgraphExec hGraphExec, CUstream hStream) {
  return with_exec(hGraphExec, hStream, [](Lock &lock, const auto &stream, const auto &exec) {
    return stream->capture != nullptr ? capture_launch(*stream, *exec) : launch(lock, stream, exec);
  });
}

CUresult cuGraphUpload(CUgraphExec hGraphExec, CUstream hStream) {
  return with_exec(hGraphExec, hStream, [](Lock &lock, const auto &stream, const auto &exec) {
    return stream->capture != nullptr ? refuse(*stream) : upload(lock, stream, exec);
  });
}

}  // namespace simcuda
