// holds OP...: physical memory and the driver's memory pools, step by step. Prints after each step its code and the MiB
// reported as free on device 0 and on device 1. holds_test.py has the expected changes.
#ifndef __CUDA_API_VERSION_INTERNAL
#define __CUDA_API_VERSION_INTERNAL
#endif
#include <cuda.h>
#include <stdio.h>
#include <string.h>

namespace {

constexpr size_t kBytes = size_t{100} << 20;

CUcontext contexts[2];
CUmemGenericAllocationHandle handle;
CUdeviceptr range, block;
CUmemoryPool pool;
CUarray array;

CUresult create(unsigned short usage) {
  CUmemAllocationProp prop = {};
  prop.allocFlags.usage = usage;
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  return cuMemCreate(&handle, kBytes, &prop, 0);
}

CUresult map() {
  const CUresult code = cuMemAddressReserve(&range, kBytes, 0, 0, 0);
  return code == CUDA_SUCCESS ? cuMemMap(range, kBytes, 0, handle, 0) : code;
}

// 512 by 512 floats, in four rows of tiles. Sparse or of deferred mapping.
CUresult make_array(unsigned flag) {
  const CUDA_ARRAY3D_DESCRIPTOR shape = {512, 512, 0, CU_AD_FORMAT_FLOAT, 1, flag};
  return cuArray3DCreate_v2(&array, &shape);
}

// Maps `rows` rows of tiles; an array of deferred mapping is mapped as a whole.
CUresult lay(decltype(cuMemMapArrayAsync) *call, CUmemOperationType type, unsigned from = 0, unsigned rows = 4) {
  CUarrayMapInfo entry = {};
  entry.resourceType = CU_RESOURCE_TYPE_ARRAY;
  entry.resource.array = array;
  entry.subresource.sparseLevel = {0, 0, 0, from * 128, 0, 512, rows * 128, 1};
  entry.memOperationType = type;
  entry.memHandle.memHandle = type == CU_MEM_OPERATION_TYPE_MAP ? handle : 0;
  entry.deviceBitMask = 1;
  const CUresult code = call(&entry, 1, nullptr);
  return code == CUDA_SUCCESS ? cuCtxSynchronize() : code;
}

// A pool that releases nothing to the device.
CUresult make_pool(int device) {
  CUmemPoolProps props = {};
  props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  props.location = {CU_MEM_LOCATION_TYPE_DEVICE, device};
  cuuint64_t all = UINT64_MAX;
  const CUresult code = cuMemPoolCreate(&pool, &props);
  return code == CUDA_SUCCESS ? cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &all) : code;
}

struct Step {
  const char *name;
  CUresult (*act)();
};

const Step kSteps[] = {
    {"create", [] { return create(0); }},
    {"tiles", [] { return create(CU_MEM_CREATE_USAGE_TILE_POOL); }},
    {"sparse", [] { return make_array(CUDA_ARRAY3D_SPARSE); }},
    {"deferred", [] { return make_array(CUDA_ARRAY3D_DEFERRED_MAPPING); }},
    {"lay", [] { return lay(cuMemMapArrayAsync, CU_MEM_OPERATION_TYPE_MAP); }},
    {"lift", [] { return lay(cuMemMapArrayAsync, CU_MEM_OPERATION_TYPE_UNMAP); }},
    {"lift_first", [] { return lay(cuMemMapArrayAsync, CU_MEM_OPERATION_TYPE_UNMAP, 0, 1); }},
    {"lift_others", [] { return lay(cuMemMapArrayAsync, CU_MEM_OPERATION_TYPE_UNMAP, 1, 3); }},
    {"lay_all", [] { return lay(cuMemMapArrayAsync_ptsz, CU_MEM_OPERATION_TYPE_MAP); }},
    {"lift_all", [] { return lay(cuMemMapArrayAsync_ptsz, CU_MEM_OPERATION_TYPE_UNMAP); }},
    {"destroy_array", [] { return cuArrayDestroy(array); }},
    {"map", map},
    {"retain", [] { return cuMemRetainAllocationHandle(&handle, reinterpret_cast<void *>(range)); }},
    {"unmap", [] { return cuMemUnmap(range, kBytes); }},
    {"release", [] { return cuMemRelease(handle); }},
    {"pool_here", [] { return make_pool(0); }},
    {"pool_there", [] { return make_pool(1); }},
    {"take", [] { return cuMemAllocFromPoolAsync(&block, kBytes, pool, nullptr); }},
    {"free",
     [] {
       const CUresult code = cuMemFreeAsync(block, nullptr);
       return code == CUDA_SUCCESS ? cuCtxSynchronize() : code;
     }},
    {"trim", [] { return cuMemPoolTrimTo(pool, 0); }},
    {"destroy", [] { return cuMemPoolDestroy(pool); }},
};

size_t free_of(int device) {
  size_t free = 0, total = 0;
  cuCtxPushCurrent_v2(contexts[device]);
  cuMemGetInfo_v2(&free, &total);
  cuCtxPopCurrent_v2(nullptr);
  return free >> 20;
}

}  // namespace

int main(int argc, char **argv) {
  if (cuInit(0) != CUDA_SUCCESS) return 1;
  for (int device = 1; device >= 0; --device) {  // ends with the first one current
    if (cuCtxCreate_v2(&contexts[device], 0, device) != CUDA_SUCCESS) return 1;
  }
  for (int i = 1; i < argc; ++i) {
    for (const Step &step : kSteps) {
      if (strcmp(argv[i], step.name) != 0) continue;
      const int code = static_cast<int>(step.act());
      printf("%s=%d %zu %zu\n", step.name, code, free_of(0), free_of(1));
    }
  }
  return 0;
}
