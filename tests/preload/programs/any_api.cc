// any_api SEED STEPS THREADS LIMIT: random allocations through every driver function, and frees through every function
// that may free them. After each step the simulated device holds at most LIMIT. At the end, with everything freed, one
// block of the whole LIMIT is granted. A refusal has the right code and leaves the output parameter as the driver does.
#ifndef __CUDA_API_VERSION_INTERNAL
#define __CUDA_API_VERSION_INTERNAL
#endif
#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>

#include <atomic>
#include <random>
#include <thread>
#include <vector>

#include "simcuda/simcuda.h"

namespace {

constexpr unsigned long long kBefore = 0x5a5a'5a5a'5a5a'5a5a;
constexpr size_t kGranularity = size_t{2} << 20;

enum Kind { kPlain, kPitch, kManaged, kOrdered, kFromPool, kArray, kMipmapped, kPhysical, kTiles, kKinds };

struct Held {
  Kind kind;
  unsigned long long what;
  CUdeviceptr mapped_at;  // of physical memory; 0: not mapped; of tiles: their array
  size_t bytes;
};

std::atomic<bool> failed{false};
unsigned long long limit = 0;
CUcontext context = nullptr;
CUmemoryPool pool = nullptr;

void fail(const char *what, unsigned long long figure) {
  if (!failed.exchange(true)) printf("%s: %llu\n", what, figure);
}

unsigned long long held() {
  simcuda_books books = {};
  simcuda_device_books(0, &books);
  return books.allocation_bytes + books.array_bytes + books.pool_bytes + books.physical_bytes;
}

CUresult take(Kind kind, size_t bytes, CUstream stream, unsigned long long *out) {
  switch (kind) {
    case kPlain:
      return cuMemAlloc_v2(out, bytes);
    case kPitch: {
      size_t pitch = 0;
      return cuMemAllocPitch_v2(out, &pitch, 3000, bytes / 3072 + 1, 4);
    }
    case kManaged:
      return cuMemAllocManaged(out, (bytes + 4095) / 4096 * 4096, CU_MEM_ATTACH_GLOBAL);
    case kOrdered:
      return cuMemAllocAsync(out, bytes, stream);
    case kFromPool:
      return cuMemAllocFromPoolAsync(out, bytes, pool, stream);
    case kArray: {
      const CUDA_ARRAY3D_DESCRIPTOR shape = {1024, bytes / 4096 + 1, 0, CU_AD_FORMAT_FLOAT, 1, 0};
      return cuArray3DCreate_v2(reinterpret_cast<CUarray *>(out), &shape);
    }
    case kMipmapped: {
      const CUDA_ARRAY3D_DESCRIPTOR shape = {1024, bytes / 4096 + 1, 0, CU_AD_FORMAT_FLOAT, 1, 0};
      return cuMipmappedArrayCreate(reinterpret_cast<CUmipmappedArray *>(out), &shape, 3);
    }
    case kTiles:
    case kPhysical: {
      CUmemAllocationProp prop = {};
      prop.allocFlags.usage = kind == kTiles ? CU_MEM_CREATE_USAGE_TILE_POOL : 0;
      prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
      prop.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
      return cuMemCreate(out, (bytes + kGranularity - 1) / kGranularity * kGranularity, &prop, 0);
    }
    case kKinds:
      break;
  }
  return CUDA_ERROR_UNKNOWN;
}

// Releases the last handle first or the last mapping first.
CUresult give_physical(const Held &it, bool handle_first) {
  if (handle_first && cuMemRelease(it.what) != CUDA_SUCCESS) return CUDA_ERROR_UNKNOWN;
  if (it.mapped_at != 0 && (cuMemUnmap(it.mapped_at, it.bytes) != CUDA_SUCCESS ||
                            cuMemAddressFree(it.mapped_at, it.bytes) != CUDA_SUCCESS)) {
    return CUDA_ERROR_UNKNOWN;
  }
  return handle_first ? CUDA_SUCCESS : cuMemRelease(it.what);
}

// 1,024 floats are eight tiles of 128 by 128, so a row of tiles takes 512 KiB.
unsigned rows_of(const Held &it) {
  return static_cast<unsigned>(it.bytes >> 19) * 128;
}

CUresult change_tiles(const Held &it, CUmemOperationType type, unsigned from_row, unsigned rows, CUstream stream) {
  CUarrayMapInfo entry = {};
  entry.resourceType = CU_RESOURCE_TYPE_ARRAY;
  entry.resource.array = reinterpret_cast<CUarray>(it.mapped_at);
  entry.subresourceType = CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_SPARSE_LEVEL;
  entry.subresource.sparseLevel = {0, 0, 0, from_row, 0, 1024, rows, 1};
  entry.memOperationType = type;
  entry.memHandleType = CU_MEM_HANDLE_TYPE_GENERIC;
  entry.memHandle.memHandle = type == CU_MEM_OPERATION_TYPE_MAP ? it.what : 0;
  entry.deviceBitMask = 1;
  return cuMemMapArrayAsync(&entry, 1, stream);
}

void lay_on_tiles(Held &it, CUstream stream) {
  const CUDA_ARRAY3D_DESCRIPTOR shape = {1024, rows_of(it), 0, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_SPARSE};
  CUarray array = nullptr;
  if (cuArray3DCreate_v2(&array, &shape) != CUDA_SUCCESS) return fail("a sparse array", shape.Height);
  it.mapped_at = reinterpret_cast<CUdeviceptr>(array);
  if (const CUresult code = change_tiles(it, CU_MEM_OPERATION_TYPE_MAP, 0, rows_of(it), stream); code != CUDA_SUCCESS) {
    fail("a mapping of tiles", static_cast<unsigned long long>(code));
  }
}

// Unmaps in two parts in stream order, or not at all; releases the handle first or in the middle.
CUresult give_tiles(const Held &it, bool unmapped, CUstream stream) {
  if (!unmapped && cuMemRelease(it.what) != CUDA_SUCCESS) return CUDA_ERROR_UNKNOWN;
  const unsigned rows = rows_of(it);
  if (unmapped && (change_tiles(it, CU_MEM_OPERATION_TYPE_UNMAP, 0, 128, stream) != CUDA_SUCCESS ||
                   cuMemRelease(it.what) != CUDA_SUCCESS ||
                   change_tiles(it, CU_MEM_OPERATION_TYPE_UNMAP, 128, rows - 128, stream) != CUDA_SUCCESS)) {
    return CUDA_ERROR_UNKNOWN;
  }
  return cuArrayDestroy(reinterpret_cast<CUarray>(it.mapped_at));
}

CUresult give(const Held &it, CUstream stream, bool other_api) {
  switch (it.kind) {
    case kTiles:
      return give_tiles(it, other_api, stream);
    case kArray:
      return cuArrayDestroy(reinterpret_cast<CUarray>(it.what));
    case kMipmapped:
      return cuMipmappedArrayDestroy(reinterpret_cast<CUmipmappedArray>(it.what));
    case kPhysical:
      return give_physical(it, other_api);
    case kOrdered:
    case kFromPool:
      return other_api ? cuMemFree_v2(it.what) : cuMemFreeAsync(it.what, stream);
    case kManaged:
      return cuMemFree_v2(it.what);
    default:
      return other_api ? cuMemFreeAsync(it.what, stream) : cuMemFree_v2(it.what);
  }
}

void map(Held &it) {
  CUdeviceptr at = 0;
  if (cuMemAddressReserve(&at, it.bytes, 0, 0, 0) != CUDA_SUCCESS) return;
  if (cuMemMap(at, it.bytes, 0, it.what, 0) == CUDA_SUCCESS) {
    it.mapped_at = at;
    CUmemGenericAllocationHandle again = 0;
    if (cuMemRetainAllocationHandle(&again, reinterpret_cast<void *>(at)) != CUDA_SUCCESS ||
        cuMemRelease(again) != CUDA_SUCCESS) {
      fail("retain and release", at);
    }
  } else {
    cuMemAddressFree(at, it.bytes);
  }
}

// A pool that is destroyed while other threads have theirs trimmed; its block keeps it alive.
void short_lived(size_t bytes, CUstream stream, bool destroyed_first) {
  CUmemPoolProps props = {};
  props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  props.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  CUmemoryPool own = nullptr;
  if (cuMemPoolCreate(&own, &props) != CUDA_SUCCESS) return fail("a pool", 0);
  unsigned long long out = kBefore;
  const CUresult code = cuMemAllocFromPoolAsync(&out, bytes, own, stream);
  if (code != CUDA_SUCCESS && (code != CUDA_ERROR_OUT_OF_MEMORY || out != 0)) fail("a pool's refusal", code);
  if (destroyed_first && cuMemPoolDestroy(own) != CUDA_SUCCESS) fail("a destroy", 0);
  if (code == CUDA_SUCCESS && cuMemFreeAsync(out, stream) != CUDA_SUCCESS) fail("a free after a destroy", out);
  if (!destroyed_first && cuMemPoolDestroy(own) != CUDA_SUCCESS) fail("a destroy", 1);
}

void work(unsigned seed, int steps) {
  cuCtxSetCurrent(context);
  std::mt19937 random(seed);
  CUstream stream = nullptr;
  cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
  std::vector<Held> mine;
  for (int step = 0; step < steps && !failed; ++step) {
    const bool takes = mine.empty() || random() % 100 < 55;
    if (random() % 32 == 0) {
      short_lived(size_t{random()} % (limit / 8) + 1, stream, random() % 2 == 0);
    } else if (takes) {
      const auto kind = static_cast<Kind>(random() % kKinds);
      const size_t bytes = (size_t{random()} % (limit / 8) + 512) / 512 * 512;
      unsigned long long out = kBefore;
      const CUresult code = take(kind, bytes, stream, &out);
      if (code == CUDA_SUCCESS) {
        mine.push_back({kind, out, 0, (bytes + kGranularity - 1) / kGranularity * kGranularity});
        if (kind == kPhysical && random() % 2 == 0) map(mine.back());
        if (kind == kTiles) lay_on_tiles(mine.back(), stream);
      } else if (code != CUDA_ERROR_OUT_OF_MEMORY || out != (kind < kArray ? 0 : kBefore)) {
        fail("a refusal's code", static_cast<unsigned long long>(code));
      }
    } else {
      const size_t which = random() % mine.size();
      if (const CUresult code = give(mine[which], stream, random() % 2 == 0); code != CUDA_SUCCESS) {
        fail("a free's code", static_cast<unsigned long long>(code) * 100 + mine[which].kind);
      }
      mine[which] = mine.back();
      mine.pop_back();
    }
    if (const unsigned long long now = held(); now > limit) fail("the device holds", now);
  }
  for (const Held &it : mine) {
    if (give(it, stream, random() % 2 == 0) != CUDA_SUCCESS) fail("a last free", it.kind);
  }
  cuStreamSynchronize(stream);
  cuStreamDestroy_v2(stream);
}

}  // namespace

int main(int argc, char **argv) {
  if (argc != 5 || cuInit(0) != CUDA_SUCCESS || cuCtxCreate_v2(&context, 0, 0) != CUDA_SUCCESS) return 1;
  limit = strtoull(argv[4], nullptr, 10);
  CUmemPoolProps props = {};
  props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  props.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  if (cuMemPoolCreate(&pool, &props) != CUDA_SUCCESS) return 1;
  const int threads = atoi(argv[3]);
  const int steps = atoi(argv[2]) / threads;
  std::vector<std::thread> all;
  for (int i = 0; i < threads; ++i) {
    all.emplace_back(work, static_cast<unsigned>(atoi(argv[1]) * 100 + i), steps);
  }
  for (std::thread &thread : all) thread.join();
  CUdeviceptr whole = 0;
  const CUresult code = cuMemAlloc_v2(&whole, limit);
  if (code != CUDA_SUCCESS) fail("the whole limit's code", static_cast<unsigned long long>(code));
  if (!failed && (cuMemFree_v2(whole) != CUDA_SUCCESS || held() > limit)) fail("held at the end", held());
  printf("%d steps\n", steps * threads);
  return failed ? 3 : 0;
}
