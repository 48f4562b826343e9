// Stream-ordered memory: allocations from pools, and frees of those and of cuMemAlloc's blocks. An allocation is no
// operation of its stream: memory that follows a free of the same stream is available to that stream at once.
// Layer: mem_pool.h. Threads: any.
#include "implemented.h"
#include "tests/simcuda/capture.h"
#include "tests/simcuda/entry.h"
#include "tests/simcuda/mem_pool.h"

namespace simcuda {
namespace {

// `choose` selects the pool for the stream; null: no pool, or one that cannot allocate.
template <class Choose>
CUresult allocate_from(CUdeviceptr *dptr, size_t bytesize, CUstream hStream, const char *symbol, Choose choose) {
  note("%zu", bytesize);
  Lock lock(driver().mutex);
  std::shared_ptr<Stream> stream;
  if (const CUresult error = find_stream(lock, hStream, &stream); error != CUDA_SUCCESS) return error;
  if (const CUresult error = may_use(*stream); error != CUDA_SUCCESS) return error;
  const std::shared_ptr<MemPool> pool = choose(*stream);
  if (dptr == nullptr || bytesize == 0 || pool == nullptr || pool->origin) return CUDA_ERROR_INVALID_VALUE;
  if (stream->capture != nullptr) {
    complain(std::string("simcuda: ") + symbol + " in a stream that captures is not simulated");
    return refuse(*stream, CUDA_ERROR_NOT_SUPPORTED);
  }
  std::uint64_t address = 0;
  if (const CUresult error = allocate_in_order(pool, stream, bytesize, &address); error != CUDA_SUCCESS) return error;
  *dptr = address;
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

// A capture may only free memory that it allocated itself (cuda.h, cuGraphAddMemFreeNode); here it allocates none.
CUresult cuMemFreeAsync(CUdeviceptr dptr, CUstream hStream) {
  Lock lock(driver().mutex);
  std::shared_ptr<Stream> stream;
  if (const CUresult error = find_stream(lock, hStream, &stream); error != CUDA_SUCCESS) return error;
  if (const CUresult error = may_use(*stream); error != CUDA_SUCCESS) return error;
  if (stream->capture != nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (dptr == 0) return CUDA_SUCCESS;
  std::map<std::uint64_t, Allocation>::iterator block;
  if (const CUresult error = begin_free(dptr, &block); error != CUDA_SUCCESS) return error;
  if (block->second.pool != nullptr && !block->second.import) {
    free_in_order(lock, block, stream);
    return CUDA_SUCCESS;
  }
  submit(lock, stream, Pace::kDelayed, [dptr, id = block->second.id] {
    const Lock in_stream_order(driver().mutex);
    finish_free(dptr, id);
  });
  return CUDA_SUCCESS;
}

}  // namespace simcuda
