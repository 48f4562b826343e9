// newcomer ROUTE MIB: what a process needs that starts beside others, by one route by which the driver takes memory of
// the device: its context, code, or so many MiB. Prints the code of the first call that fails, or 0, waits for the end
// of its input, and ends with status 0 where every call succeeded.
#ifndef __CUDA_API_VERSION_INTERNAL
#define __CUDA_API_VERSION_INTERNAL
#endif
#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "simcuda/simcuda.h"

namespace {

const char kImage[] = "any bytes are an image here";
size_t bytes;

CUresult done;
bool succeeds(CUresult code) {
  if (done == CUDA_SUCCESS) done = code;
  return done == CUDA_SUCCESS;
}

bool enter_primary() {
  CUcontext context = nullptr;
  return succeeds(cuDevicePrimaryCtxRetain(&context, 0)) && succeeds(cuCtxSetCurrent(context));
}

void nothing(const simcuda_launch *) {}

CUresult launch(CUfunction function) {
  const CUresult code = cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr);
  return code == CUDA_SUCCESS ? cuCtxSynchronize() : code;
}

void use_library(bool by_launch) {
  CUlibrary library = nullptr;
  CUkernel kernel = nullptr;
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  simcuda_register_global("variable", bytes);
  simcuda_register_kernel("nothing", nothing, nullptr, 0);
  if (!succeeds(cuLibraryLoadData(&library, kImage, nullptr, nullptr, 0, nullptr, nullptr, 0))) return;
  if (by_launch) {
    succeeds(cuLibraryGetKernel(&kernel, library, "nothing")) && succeeds(launch(reinterpret_cast<CUfunction>(kernel)));
  } else {
    succeeds(cuLibraryGetModule(&module, library)) && succeeds(cuModuleGetFunction(&function, module, "nothing"));
  }
}

void load_module() {
  CUmodule module = nullptr;
  simcuda_register_global("variable", bytes);
  succeeds(cuModuleLoadData(&module, kImage));
}

// The heap is taken at the next launch.
void launch_with_heap() {
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  simcuda_register_kernel("nothing", nothing, nullptr, 0);
  succeeds(cuModuleLoadData(&module, kImage)) && succeeds(cuModuleGetFunction(&function, module, "nothing")) &&
      succeeds(cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, bytes)) && succeeds(launch(function));
}

void make_array(unsigned levels) {
  CUarray array = nullptr;
  CUmipmappedArray mipmapped = nullptr;
  CUDA_ARRAY3D_DESCRIPTOR shape = {1024, 1024, 0, CU_AD_FORMAT_FLOAT, 4, CUDA_ARRAY3D_LAYERED};
  shape.Depth = bytes / (1024 * 1024 * 16);
  if (levels == 1) {
    succeeds(cuArray3DCreate_v2(&array, &shape));
  } else {
    succeeds(cuMipmappedArrayCreate(&mipmapped, &shape, levels));
  }
}

void create_physical() {
  CUmemAllocationProp prop = {};
  CUmemGenericAllocationHandle handle = 0;
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  succeeds(cuMemCreate(&handle, bytes, &prop, 0));
}

void allocate_from_own_pool() {
  CUmemPoolProps props = {};
  CUmemoryPool pool = nullptr;
  CUdeviceptr block = 0;
  props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  props.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  succeeds(cuMemPoolCreate(&pool, &props)) && succeeds(cuMemAllocFromPoolAsync(&block, bytes, pool, nullptr)) &&
      succeeds(cuCtxSynchronize());
}

void run_graph(bool upload) {
  CUgraph graph = nullptr;
  CUgraphNode taken = nullptr, freed = nullptr;
  CUgraphExec exec = nullptr;
  CUstream stream = nullptr;
  CUDA_MEM_ALLOC_NODE_PARAMS params = {};
  params.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  params.poolProps.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  params.bytesize = bytes;
  succeeds(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING)) && succeeds(cuGraphCreate(&graph, 0)) &&
      succeeds(cuGraphAddMemAllocNode(&taken, graph, nullptr, 0, &params)) &&
      succeeds(cuGraphAddMemFreeNode(&freed, graph, &taken, 1, params.dptr)) &&
      succeeds(cuGraphInstantiateWithFlags(&exec, graph, 0)) &&
      succeeds(upload ? cuGraphUpload(exec, stream) : cuGraphLaunch(exec, stream)) &&
      succeeds(cuStreamSynchronize(stream));
}

struct Route {
  const char *name;
  bool in_primary;
  void (*take)();
};

const Route kRoutes[] = {
    {"primary", true, [] {}},
    {"context", false,
     [] {
       CUcontext made = nullptr;
       succeeds(cuCtxCreate_v2(&made, 0, 0));
     }},
    {"second_context", true,
     [] {
       CUcontext made = nullptr;
       succeeds(cuCtxCreate_v2(&made, 0, 0));
     }},
    {"green", false,
     [] {
       CUdevResource resource = {};
       CUdevResourceDesc description = nullptr;
       CUgreenCtx green = nullptr;
       succeeds(cuDeviceGetDevResource(0, &resource, CU_DEV_RESOURCE_TYPE_SM)) &&
           succeeds(cuDevResourceGenerateDesc(&description, &resource, 1)) &&
           succeeds(cuGreenCtxCreate(&green, description, 0, CU_GREEN_CTX_DEFAULT_STREAM));
     }},
    {"module", true, load_module},
    {"library", true, [] { use_library(false); }},
    {"library_launch", true, [] { use_library(true); }},
    {"heap_launch", true, launch_with_heap},
    {"stack_limit", true, [] { succeeds(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 3072)); }},
    {"alloc", true,
     [] {
       CUdeviceptr block = 0;
       succeeds(cuMemAlloc_v2(&block, bytes));
     }},
    {"pitched", true,
     [] {
       CUdeviceptr block = 0;
       size_t pitch = 0;
       succeeds(cuMemAllocPitch_v2(&block, &pitch, 1 << 20, bytes >> 20, 4));
     }},
    {"managed", true,
     [] {
       CUdeviceptr block = 0;
       succeeds(cuMemAllocManaged(&block, bytes, CU_MEM_ATTACH_GLOBAL));
     }},
    {"array", true, [] { make_array(1); }},
    {"mipmapped", true, [] { make_array(2); }},
    {"physical", true, create_physical},
    {"async", true,
     [] {
       CUdeviceptr block = 0;
       succeeds(cuMemAllocAsync(&block, bytes, nullptr)) && succeeds(cuCtxSynchronize());
     }},
    {"own_pool", true, allocate_from_own_pool},
    {"graph_launch", true, [] { run_graph(false); }},
    {"graph_upload", true, [] { run_graph(true); }},
};

}  // namespace

int main(int argc, char **argv) {
  if (argc == 1) {
    for (const Route &route : kRoutes) printf("%s\n", route.name);
    return 0;
  }
  bytes = argc > 2 ? strtoul(argv[2], nullptr, 10) << 20 : 0;
  for (const Route &route : kRoutes) {
    if (strcmp(route.name, argv[1]) == 0 && succeeds(cuInit(0)) && (!route.in_primary || enter_primary())) route.take();
  }
  dprintf(1, "%d\n", static_cast<int>(done));
  char byte = 0;
  const ssize_t more = read(0, &byte, 1);
  return done == CUDA_SUCCESS && more == 0 ? 0 : 1;
}
