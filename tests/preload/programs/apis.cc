// apis API COUNT: allocates about 100 MiB at a time through one entry point (API) until refused, or COUNT times. It
// frees all and repeats; then once more in a context whose destruction frees everything; and once more after that. It
// prints a line each time: the count, the code, whether a refused call left its output parameter as the driver does,
// what the device holds, the free memory reported, and free and total memory from the 32-bit calls. apis_test.py has
// the expected values.
#ifndef __CUDA_API_VERSION_INTERNAL
#define __CUDA_API_VERSION_INTERNAL
#endif
#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <vector>

#include "simcuda/simcuda.h"

namespace {

constexpr size_t kBytes = size_t{100} << 20;
constexpr unsigned kSide = 5120;  // squared, of floats: 100 MiB
constexpr unsigned long long kBefore = 0x5a5a'5a5a'5a5a'5a5a;

// A handle or an address, depending on the entry point.
union Thing {
  unsigned long long pattern = kBefore;
  CUarray array;
  CUmipmappedArray mipmapped;
  CUdeviceptr_v1 narrow;
  CUdeviceptr address;
  CUmemGenericAllocationHandle physical;
  void *host;
};

struct Api {
  const char *name;
  CUresult (*take)(Thing *thing);
  CUresult (*give)(Thing thing);
  bool outlives_context = false;
  bool has_handle = false;
};

CUresult destroy_array(Thing thing) {
  return cuArrayDestroy(thing.array);
}
CUresult free_host(Thing thing) {
  return cuMemFreeHost(thing.host);
}
CUresult free_narrow(Thing thing) {
  return cuMemFree(thing.narrow);
}

CUresult take_array(Thing *thing, CUDA_ARRAY3D_DESCRIPTOR shape) {
  return cuArray3DCreate_v2(&thing->array, &shape);
}
CUresult pin(Thing *thing, CUresult (*call)(void *, size_t, unsigned)) {
  thing->host = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return call(thing->host, kBytes, 0);
}
CUresult unpin(Thing thing) {
  const CUresult code = cuMemHostUnregister(thing.host);
  munmap(thing.host, kBytes);
  return code;
}

CUmemoryPool pool_of_its_own() {
  static CUmemoryPool pool = nullptr;
  if (pool == nullptr) {
    CUmemPoolProps props = {};
    props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    props.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    cuMemPoolCreate(&pool, &props);
    cuuint64_t all = UINT64_MAX;  // releases nothing to the device
    cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &all);
  }
  return pool;
}
CUresult take_from(Thing *thing, CUmemoryPool pool) {
  return cuMemAllocFromPoolAsync(&thing->address, kBytes, pool, nullptr);
}
CUresult take_from_default(Thing *thing, decltype(&cuMemAllocFromPoolAsync) call) {
  CUmemoryPool pool = nullptr;
  const CUresult code = cuDeviceGetDefaultMemPool(&pool, 0);
  return code == CUDA_SUCCESS ? call(&thing->address, kBytes, pool, nullptr) : code;
}
CUresult free_in_order(Thing thing) {
  return cuMemFreeAsync(thing.address, nullptr);
}
CUresult create(Thing *thing, CUmemLocationType where) {
  CUmemAllocationProp prop = {};
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop.location = {where, 0};
  return cuMemCreate(&thing->physical, kBytes, &prop, 0);
}
CUresult release(Thing thing) {
  return cuMemRelease(thing.physical);
}

const Api kApis[] = {
    {"cuMemAllocManaged", [](Thing *thing) { return cuMemAllocManaged(&thing->address, kBytes, CU_MEM_ATTACH_GLOBAL); },
     [](Thing thing) { return cuMemFree_v2(thing.address); }},
    {"cuMemCreate", [](Thing *thing) { return create(thing, CU_MEM_LOCATION_TYPE_DEVICE); }, release, true, true},
    {"cuMemCreate on the host", [](Thing *thing) { return create(thing, CU_MEM_LOCATION_TYPE_HOST); }, release, true,
     true},
    {"cuMemAllocAsync", [](Thing *thing) { return cuMemAllocAsync(&thing->address, kBytes, nullptr); }, free_in_order,
     true},
    {"cuMemAllocAsync_ptsz", [](Thing *thing) { return cuMemAllocAsync_ptsz(&thing->address, kBytes, nullptr); },
     [](Thing thing) { return cuMemFreeAsync_ptsz(thing.address, nullptr); }, true},
    {"freed by cuMemFree", [](Thing *thing) { return cuMemAllocAsync(&thing->address, kBytes, nullptr); },
     [](Thing thing) { return cuMemFree_v2(thing.address); }, true},
    {"from the default pool", [](Thing *thing) { return take_from_default(thing, cuMemAllocFromPoolAsync); },
     free_in_order, true},
    {"from the default pool by a thread's stream",
     [](Thing *thing) { return take_from_default(thing, cuMemAllocFromPoolAsync_ptsz); },
     [](Thing thing) { return cuMemFreeAsync_ptsz(thing.address, nullptr); }, true},
    {"from a pool of its own", [](Thing *thing) { return take_from(thing, pool_of_its_own()); }, free_in_order, true},
    {"from a pool that was set",
     [](Thing *thing) {
       const CUresult code = cuDeviceSetMemPool(0, pool_of_its_own());
       return code == CUDA_SUCCESS ? cuMemAllocAsync(&thing->address, kBytes, nullptr) : code;
     },
     free_in_order, true},
    {"cuArrayCreate",
     [](Thing *thing) {
       const CUDA_ARRAY_DESCRIPTOR_v1 shape = {kSide, kSide, CU_AD_FORMAT_FLOAT, 1};
       return cuArrayCreate(&thing->array, &shape);
     },
     destroy_array, false, true},
    {"cuArrayCreate_v2",
     [](Thing *thing) {
       const CUDA_ARRAY_DESCRIPTOR shape = {kSide, kSide, CU_AD_FORMAT_FLOAT, 1};
       return cuArrayCreate_v2(&thing->array, &shape);
     },
     destroy_array, false, true},
    {"cuArray3DCreate",
     [](Thing *thing) {
       const CUDA_ARRAY3D_DESCRIPTOR_v1 shape = {1024, 1024, 25, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_LAYERED};
       return cuArray3DCreate(&thing->array, &shape);
     },
     destroy_array, false, true},
    {"cuArray3DCreate_v2",
     [](Thing *thing) {
       return take_array(thing, {1024, 1024, 25, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_LAYERED});
     },
     destroy_array, false, true},
    {"deep",
     [](Thing *thing) {
       return take_array(thing, {1024, 1024, 25, CU_AD_FORMAT_FLOAT, 1, 0});
     },
     destroy_array, false, true},
    {"sparse",
     [](Thing *thing) {
       return take_array(thing, {kSide, kSide, 0, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_SPARSE});
     },
     destroy_array, false, true},
    {"deferred",
     [](Thing *thing) {
       return take_array(thing, {kSide, kSide, 0, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_DEFERRED_MAPPING});
     },
     destroy_array, false, true},
    {"cuMipmappedArrayCreate",
     [](Thing *thing) {
       const CUDA_ARRAY3D_DESCRIPTOR shape = {4096, 4096, 0, CU_AD_FORMAT_FLOAT, 1, 0};
       return cuMipmappedArrayCreate(&thing->mipmapped, &shape, 4);
     },
     [](Thing thing) { return cuMipmappedArrayDestroy(thing.mipmapped); }, false, true},
    {"cuMemAlloc", [](Thing *thing) { return cuMemAlloc(&thing->narrow, static_cast<unsigned>(kBytes)); }, free_narrow},
    {"cuMemAllocPitch",
     [](Thing *thing) {
       unsigned pitch = 77;
       const CUresult code = cuMemAllocPitch(&thing->narrow, &pitch, 10240, 10240, 4);
       return code != CUDA_SUCCESS && pitch != 10240 ? CUDA_ERROR_UNKNOWN : code;
     },
     free_narrow},
    {"cuMemAllocHost", [](Thing *thing) { return cuMemAllocHost(&thing->host, static_cast<unsigned>(kBytes)); },
     free_host},
    {"cuMemAllocHost_v2", [](Thing *thing) { return cuMemAllocHost_v2(&thing->host, kBytes); }, free_host},
    {"cuMemHostAlloc", [](Thing *thing) { return cuMemHostAlloc(&thing->host, kBytes, 0); }, free_host},
    {"cuMemHostRegister", [](Thing *thing) { return pin(thing, cuMemHostRegister); }, unpin},
    {"cuMemHostRegister_v2", [](Thing *thing) { return pin(thing, cuMemHostRegister_v2); }, unpin},
};

// A refused call sets an address to 0, in as many bits as it has, and leaves a handle as it was.
bool is_as_driver(const Api &api, Thing thing) {
  return thing.pattern == (api.has_handle ? kBefore : 0) || (!api.has_handle && thing.pattern == kBefore >> 32 << 32);
}

void say(size_t blocks, CUresult code, bool as_driver) {
  simcuda_books books = {};
  simcuda_device_books(0, &books);
  size_t free = 0;
  cuMemGetInfo_v2(&free, nullptr);
  unsigned narrow_free = 0, narrow_total = 0, narrow_device = 0;
  cuMemGetInfo(&narrow_free, &narrow_total);
  cuDeviceTotalMem(&narrow_device, 0);
  printf("blocks=%zu code=%d as_driver=%d held=%llu free=%zu narrow=%u,%u,%u\n", blocks, static_cast<int>(code),
         as_driver ? 1 : 0, books.allocation_bytes + books.array_bytes + books.pool_bytes + books.physical_bytes, free,
         narrow_free, narrow_total, narrow_device);
}

std::vector<Thing> fill(const Api &api, size_t most) {
  std::vector<Thing> things;
  CUresult code = CUDA_SUCCESS;
  bool as_driver = true;
  while (code == CUDA_SUCCESS && things.size() < most) {
    Thing thing;
    code = api.take(&thing);
    if (code == CUDA_SUCCESS) {
      things.push_back(thing);
    } else {
      as_driver = is_as_driver(api, thing);
    }
  }
  say(things.size(), code, as_driver);
  return things;
}

bool give(const Api &api, const std::vector<Thing> &things) {
  bool all = true;
  for (const Thing &thing : things) all = api.give(thing) == CUDA_SUCCESS && all;
  return all;
}

}  // namespace

int main(int argc, char **argv) {
  const Api *api = nullptr;
  for (const Api &candidate : kApis) {
    if (argc == 3 && strcmp(argv[1], candidate.name) == 0) api = &candidate;
  }
  CUcontext context = nullptr, other = nullptr;
  if (api == nullptr || cuInit(0) != CUDA_SUCCESS || cuCtxCreate_v2(&context, 0, 0) != CUDA_SUCCESS) return 1;
  const size_t most = static_cast<size_t>(atoi(argv[2]));
  if (!give(*api, fill(*api, most))) return 3;
  if (cuCtxCreate_v2(&other, 0, 0) != CUDA_SUCCESS) return 1;
  const std::vector<Thing> things = fill(*api, most);
  if (api->outlives_context && !give(*api, things)) return 3;
  if (cuCtxDestroy_v2(other) != CUDA_SUCCESS || cuCtxSetCurrent(context) != CUDA_SUCCESS) return 1;
  if (!give(*api, fill(*api, most)) || cuCtxSynchronize() != CUDA_SUCCESS) return 3;
  if (CUmemoryPool pool = nullptr; cuDeviceGetMemPool(&pool, 0) == CUDA_SUCCESS) cuMemPoolTrimTo(pool, 0);
  if (strcmp(api->name, "from a pool of its own") == 0) cuMemPoolTrimTo(pool_of_its_own(), 0);
  say(0, CUDA_SUCCESS, true);
  return 0;
}
