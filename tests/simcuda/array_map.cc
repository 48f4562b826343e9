// Mapping of sparse and deferred-mapping arrays: tiles of physical memory, mapped and unmapped in stream order. A tile
// keeps its memory until it is unmapped or remapped, or its array is destroyed. No data is read or written through it.
// Layer: array_tiles.h. Threads: any.
#include "implemented.h"
#include "tests/simcuda/array_tiles.h"
#include "tests/simcuda/capture.h"
#include "tests/simcuda/entry.h"

namespace simcuda {
namespace {

struct Change {
  std::weak_ptr<ArrayMemory> array;  // another context may destroy it before its stream reaches the operation
  TileRegion region;
  std::shared_ptr<const MemoryHold> memory;  // null: unmap
};
using Changes = std::vector<Change>;

// cuda.h: 2D, 2D layered and 3D ones.
bool mapped_later(const CUDA_ARRAY3D_DESCRIPTOR &shape) {
  return (shape.Flags & (CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING)) != 0 && shape.Height != 0 &&
         (shape.Flags & CUDA_ARRAY3D_CUBEMAP) == 0;
}

CUresult find_resource(const CUarrayMapInfo &request, std::shared_ptr<ArrayMemory> *memory) {
  const void *owner = nullptr;
  if (request.resourceType == CU_RESOURCE_TYPE_ARRAY) {
    const Array *array = find_array(request.resource.array);
    if (array == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (array->view) return CUDA_ERROR_INVALID_VALUE;
    owner = array;
  } else if (request.resourceType == CU_RESOURCE_TYPE_MIPMAPPED_ARRAY) {
    owner = find_mipmapped_array(request.resource.mipmap);
    if (owner == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  } else {
    return CUDA_ERROR_INVALID_VALUE;
  }
  *memory = driver().array_memory.at(owner);
  return mapped_later((*memory)->shape) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

bool fits(const CUarrayMapInfo &request, std::uint64_t bytes, int ordinal) {
  const MemoryHandle *const handle = memory_handle(request.memHandle.memHandle);
  if (handle == nullptr || request.memHandleType != CU_MEM_HANDLE_TYPE_GENERIC) return false;
  const PhysicalMemory &pool = *handle->memory;
  if ((pool.properties.allocFlags.usage & CU_MEM_CREATE_USAGE_TILE_POOL) == 0) return false;
  if (pool.on_host() || pool.properties.location.id != ordinal) return false;
  return request.offset % kTileBytes == 0 && request.offset <= pool.bytes && bytes <= pool.bytes - request.offset;
}

CUresult check(const CUarrayMapInfo &request, const Device &device, Change *change) {
  std::shared_ptr<ArrayMemory> memory;
  if (const CUresult error = find_resource(request, &memory); error != CUDA_SUCCESS) return error;
  const int ordinal = ordinal_of(device);
  if (memory->context->device != &device || request.deviceBitMask != std::uint64_t{1} << ordinal) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (request.flags != 0 || request.reserved[0] != 0 || request.reserved[1] != 0) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult error = region_of(*memory, request, &change->region); error != CUDA_SUCCESS) return error;
  change->array = memory;
  // H100, driver 580.159: an unmapping that names memory is accepted.
  if (request.memOperationType == CU_MEM_OPERATION_TYPE_UNMAP) return CUDA_SUCCESS;
  if (request.memOperationType != CU_MEM_OPERATION_TYPE_MAP || !fits(request, change->region.bytes, ordinal)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  change->memory = std::make_shared<const MemoryHold>(request.memHandle.memHandle);
  return CUDA_SUCCESS;
}

void apply(const Change &change) {
  const std::shared_ptr<ArrayMemory> array = change.array.lock();
  if (array == nullptr) return;
  auto &mapped = array->mapped;
  for (const TileRun &run : change.region.runs) {
    mapped.erase(mapped.lower_bound(run.first), mapped.lower_bound(run.first + run.count));
    if (change.memory == nullptr) continue;
    const auto next = mapped.lower_bound(run.first);
    for (std::uint64_t tile = run.first; tile < run.first + run.count; ++tile) {
      mapped.emplace_hint(next, tile, change.memory);
    }
  }
}

}  // namespace

// All or nothing; none of it can be captured.
CUresult cuMemMapArrayAsync(CUarrayMapInfo *mapInfoList, unsigned int count, CUstream hStream) {
  note("%u", count);
  Lock lock(driver().mutex);
  std::shared_ptr<Stream> stream;
  if (const CUresult error = find_stream(lock, hStream, &stream); error != CUDA_SUCCESS) return error;
  if (const CUresult error = may_use(*stream); error != CUDA_SUCCESS) return error;
  if (mapInfoList == nullptr || count == 0) return CUDA_ERROR_INVALID_VALUE;
  auto changes = std::make_shared<Changes>();
  for (unsigned i = 0; i < count; ++i) {
    const CUresult error = check(mapInfoList[i], *stream->context->device, &changes->emplace_back());
    if (error != CUDA_SUCCESS) return error;
  }
  const auto map = [changes = std::move(changes)] {
    const Lock in_stream_order(driver().mutex);
    for (const Change &change : *changes) apply(change);
    changes->clear();  // releases under the lock the memory that no tile uses any more
  };
  return run(lock, stream, Form::kSynchronous, Until::kQueued, {CU_GRAPH_NODE_TYPE_EMPTY, map});
}

}  // namespace simcuda
