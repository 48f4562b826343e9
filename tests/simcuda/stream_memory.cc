// Stream-ordered memory: allocations from pools, and frees of those and of cuMemAlloc's blocks. An allocation is no
// operation of its stream: memory that follows a free of the same stream is available to that stream at once. In a
// capture both are nodes of the graph. Layer: mem_pool.h, graph_memory.h. Threads: any.
#include "implemented.h"
#include "tests/simcuda/capture.h"
#include "tests/simcuda/entry.h"
#include "tests/simcuda/graph_memory.h"
#include "tests/simcuda/mem_pool.h"

namespace simcuda {
namespace {

// Not what is captured once more, nor into a child graph.
bool may_have_memory(const Capture &capture) {
  return capture.again == nullptr && !capture.graph->owned;
}

// The memory is the graph's: of the pool only the device and its accesses count.
CUresult capture_allocation(Stream &stream, const MemPool &pool, std::size_t bytes, const char *symbol,
                            CUdeviceptr *address) {
  if (!may_have_memory(*stream.capture)) {
    complain(std::string("simcuda: ") + symbol + " in this capture is not simulated");
    return refuse(stream, CUDA_ERROR_NOT_SUPPORTED);
  }
  std::shared_ptr<GraphBlock> block = new_block(*pool.device, bytes);
  if (block == nullptr) return refuse(stream, CUDA_ERROR_OUT_OF_MEMORY);
  block->properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  block->properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, ordinal_of(*pool.device)};
  for (const auto &[device, flags] : pool.access) {
    block->access.push_back({{CU_MEM_LOCATION_TYPE_DEVICE, ordinal_of(*device)}, flags});
  }
  *address = block->address;
  GraphNode *const node = add_allocation(*stream.capture->graph, std::move(block), stream.frontier);
  node->captured = true;
  stream.frontier = {node};
  return CUDA_SUCCESS;
}

// `choose` selects the pool for the stream; null: no pool, or one that cannot allocate.
template <class Choose>
CUresult allocate_from(CUdeviceptr *dptr, size_t bytesize, CUstream hStream, const char *symbol, Choose choose) {
  note("%zu", bytesize);
  // H100, H200, driver 580.159: of no bytes and for lack of memory. Other refusals were not asked: as cuMemAlloc.
  if (dptr != nullptr) *dptr = 0;
  Lock lock(driver().mutex);
  std::shared_ptr<Stream> stream;
  if (const CUresult error = find_stream(lock, hStream, &stream); error != CUDA_SUCCESS) return error;
  if (const CUresult error = may_use(*stream); error != CUDA_SUCCESS) return error;
  const std::shared_ptr<MemPool> pool = choose(*stream);
  if (dptr == nullptr || pool == nullptr || pool->origin) return CUDA_ERROR_INVALID_VALUE;
  if (stream->capture != nullptr) {
    if (bytesize == 0) return CUDA_ERROR_INVALID_VALUE;
    return capture_allocation(*stream, *pool, bytesize, symbol, dptr);
  }
  if (const CUresult error = may_act_unseen(); error != CUDA_SUCCESS) return error;
  if (bytesize == 0) return CUDA_SUCCESS;  // H100, H200, driver 580.159: no error
  std::uint64_t address = 0;
  const CUresult error = allocate_in_order(pool, stream, bytesize, &address);
  *dptr = address;
  return error;
}

// A capture may only free memory of graphs.
CUresult capture_free(Stream &stream, CUdeviceptr address) {
  if (!may_have_memory(*stream.capture)) return CUDA_ERROR_INVALID_VALUE;
  GraphNode *const node = add_free(*stream.capture->graph, address, stream.frontier);
  if (node == nullptr) return CUDA_ERROR_INVALID_VALUE;
  node->captured = true;
  stream.frontier = {node};
  return CUDA_SUCCESS;
}

}  // namespace

CUresult cuMemAllocAsync(CUdeviceptr *dptr, size_t bytesize, CUstream hStream) {
  return allocate_from(dptr, bytesize, hStream, "cuMemAllocAsync",
                       [](const Stream &stream) { return current_pool(*stream.context->device); });
}

CUresult cuMemAllocFromPoolAsync(CUdeviceptr *dptr, size_t bytesize, CUmemoryPool pool, CUstream hStream) {
  return allocate_from(dptr, bytesize, hStream, "cuMemAllocFromPoolAsync",
                       [pool](const Stream &) { return find_pool(pool); });
}

CUresult cuMemFreeAsync(CUdeviceptr dptr, CUstream hStream) {
  Lock lock(driver().mutex);
  std::shared_ptr<Stream> stream;
  if (const CUresult error = find_stream(lock, hStream, &stream); error != CUDA_SUCCESS) return error;
  if (const CUresult error = may_use(*stream); error != CUDA_SUCCESS) return error;
  if (stream->capture != nullptr) return capture_free(*stream, dptr);
  if (const CUresult error = may_act_unseen(); error != CUDA_SUCCESS) return error;
  if (dptr == 0) return CUDA_SUCCESS;
  std::map<std::uint64_t, Allocation>::iterator block;
  if (const CUresult error = begin_free(dptr, &block); error != CUDA_SUCCESS) return error;
  if (block->second.pool != nullptr && !block->second.import) {
    free_in_order(lock, block, stream);
    return CUDA_SUCCESS;
  }
  if (block->second.graph_block != nullptr) {
    free_graph_block(lock, block, stream);
    return CUDA_SUCCESS;
  }
  submit(lock, stream, Pace::kDelayed, [dptr, id = block->second.id] {
    const Lock in_stream_order(driver().mutex);
    finish_free(dptr, id);
  });
  return CUDA_SUCCESS;
}

}  // namespace simcuda
