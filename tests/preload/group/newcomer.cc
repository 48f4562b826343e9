// newcomer ROUTE MIB...: what a process needs that starts beside others, by routes by which the driver takes memory of
// the device: its context, code, or so many MiB. Prints the code of the first call that fails, or 0. Then it obeys
// lines of its input, each answered in the same way: `check` looks whether its blocks hold what it wrote, `free` gives
// back what it took, but its primary contexts. Routes elsewhere_... take memory of device 1. At the end of its input it
// ends, with status 0 where every call succeeded. NEWCOMER_HANDLE: a file with which ipc_export lends a block to
// ipc_open in another process.
#ifndef __CUDA_API_VERSION_INTERNAL
#define __CUDA_API_VERSION_INTERNAL
#endif
#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <functional>
#include <thread>
#include <vector>

#include "simcuda/simcuda.h"

namespace {

const char kImage[] = "any bytes are an image here";
constexpr int kParts = 4;  // threads or streams
size_t bytes;

CUresult done;
bool succeeds(CUresult code) {
  if (done == CUDA_SUCCESS) done = code;
  return done == CUDA_SUCCESS;
}

bool enter_primary(CUdevice device = 0) {
  CUcontext context = nullptr;
  return succeeds(cuDevicePrimaryCtxRetain(&context, device)) && succeeds(cuCtxSetCurrent(context));
}

struct Taken {
  CUcontext context;  // in which it was taken
  CUdeviceptr block;  // that has a mark; 0: it is no block
  std::function<CUresult()> give_back;
};
std::vector<Taken> taken;

void took(std::function<CUresult()> give_back, CUdeviceptr block = 0) {
  CUcontext context = nullptr;
  if (succeeds(cuCtxGetCurrent(&context))) taken.push_back({context, block, std::move(give_back)});
}

// Its mark is its own address, in the first and the last bytes of it.
void took_block(CUdeviceptr block, size_t size, CUstream stream, std::function<CUresult()> give_back) {
  const auto mark = static_cast<unsigned>(block >> 9U);
  if (succeeds(cuMemsetD32Async(block, mark, 1, stream)) &&
      succeeds(cuMemsetD32Async(block + size - 4, mark, 1, stream)) && succeeds(cuStreamSynchronize(stream))) {
    took(std::move(give_back), block);
  }
}

bool is_intact(const Taken &one) {
  unsigned first = 0;
  return one.block == 0 || (succeeds(cuMemcpyDtoH_v2(&first, one.block, sizeof(first))) &&
                            first == static_cast<unsigned>(one.block >> 9U));
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
  took([=] { return cuLibraryUnload(library); });
}

void load_module() {
  CUmodule module = nullptr;
  simcuda_register_global("variable", bytes);
  if (succeeds(cuModuleLoadData(&module, kImage))) took([=] { return cuModuleUnload(module); });
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
    if (succeeds(cuArray3DCreate_v2(&array, &shape))) took([=] { return cuArrayDestroy(array); });
  } else if (succeeds(cuMipmappedArrayCreate(&mipmapped, &shape, levels))) {
    took([=] { return cuMipmappedArrayDestroy(mipmapped); });
  }
}

void create_physical(bool mapped, CUdevice device = 0) {
  CUmemAllocationProp prop = {};
  CUmemGenericAllocationHandle handle = 0;
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop.location = {CU_MEM_LOCATION_TYPE_DEVICE, device};
  const CUmemAccessDesc access = {prop.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  if (!succeeds(cuMemCreate(&handle, bytes, &prop, 0))) return;
  if (!mapped) return took([=] { return cuMemRelease(handle); });
  CUdeviceptr range = 0;
  const size_t size = bytes;
  succeeds(cuMemAddressReserve(&range, size, 0, 0, 0)) && succeeds(cuMemMap(range, size, 0, handle, 0)) &&
      succeeds(cuMemSetAccess(range, size, &access, 1)) && succeeds(cuMemRelease(handle));
  took_block(range, size, nullptr, [=] { return cuMemUnmap(range, size); });
}

void allocate(size_t size) {
  CUdeviceptr block = 0;
  if (succeeds(cuMemAlloc_v2(&block, size))) took_block(block, size, nullptr, [=] { return cuMemFree_v2(block); });
}

void allocate_in_order(size_t size, CUstream stream) {
  CUdeviceptr block = 0;
  if (succeeds(cuMemAllocAsync(&block, size, stream))) {
    took_block(block, size, stream, [=] { return cuMemFreeAsync(block, stream); });
  }
}

// They take turns: which of them is first must not matter to the answers.
void allocate_in_threads() {
  CUcontext context = nullptr;
  if (!succeeds(cuCtxGetCurrent(&context))) return;
  for (int i = 0; i < kParts; ++i) {
    std::thread([=] { succeeds(cuCtxSetCurrent(context)) ? allocate(bytes / kParts) : void(); }).join();
  }
}

void allocate_in_streams() {
  for (int i = 0; i < kParts; ++i) {
    CUstream stream = nullptr;
    if (succeeds(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING))) allocate_in_order(bytes / kParts, stream);
  }
}

void lend() {
  CUipcMemHandle handle = {};
  allocate(bytes);
  FILE *file = fopen(getenv("NEWCOMER_HANDLE"), "w");
  if (done == CUDA_SUCCESS && succeeds(cuIpcGetMemHandle(&handle, taken.back().block))) {
    fwrite(&handle, sizeof(handle), 1, file);
  }
  fclose(file);
}

void borrow() {
  CUipcMemHandle handle = {};
  CUdeviceptr block = 0;
  unsigned first = 0;
  FILE *file = fopen(getenv("NEWCOMER_HANDLE"), "r");
  const bool whole = fread(&handle, sizeof(handle), 1, file) == 1;
  fclose(file);
  succeeds(whole ? CUDA_SUCCESS : CUDA_ERROR_FILE_NOT_FOUND) &&
      succeeds(cuIpcOpenMemHandle_v2(&block, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS)) &&
      succeeds(cuMemcpyDtoH_v2(&first, block, sizeof(first))) && succeeds(cuIpcCloseMemHandle(block)) &&
      succeeds(first != 0 ? CUDA_SUCCESS : CUDA_ERROR_UNKNOWN);
}

void allocate_from_own_pool() {
  CUmemPoolProps props = {};
  CUmemoryPool pool = nullptr;
  CUdeviceptr block = 0;
  props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  props.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  if (succeeds(cuMemPoolCreate(&pool, &props)) && succeeds(cuMemAllocFromPoolAsync(&block, bytes, pool, nullptr))) {
    took_block(block, bytes, nullptr, [=] {
      const CUresult freed = cuMemFreeAsync(block, nullptr);
      return freed == CUDA_SUCCESS ? cuMemPoolDestroy(pool) : freed;
    });
  }
}

void run_graph(bool upload, CUdevice device = 0) {
  CUgraph graph = nullptr;
  CUgraphNode taken = nullptr, freed = nullptr;
  CUgraphExec exec = nullptr;
  CUstream stream = nullptr;
  CUDA_MEM_ALLOC_NODE_PARAMS params = {};
  params.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  params.poolProps.location = {CU_MEM_LOCATION_TYPE_DEVICE, device};
  params.bytesize = bytes;
  succeeds(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING)) && succeeds(cuGraphCreate(&graph, 0)) &&
      succeeds(cuGraphAddMemAllocNode(&taken, graph, nullptr, 0, &params)) &&
      succeeds(cuGraphAddMemFreeNode(&freed, graph, &taken, 1, params.dptr)) &&
      succeeds(cuGraphInstantiateWithFlags(&exec, graph, 0)) &&
      succeeds(upload ? cuGraphUpload(exec, stream) : cuGraphLaunch(exec, stream)) &&
      succeeds(cuStreamSynchronize(stream));
  took([=] {
    const CUresult ended = cuGraphExecDestroy(exec);
    return ended == CUDA_SUCCESS ? cuDeviceGraphMemTrim(device) : ended;
  });
}

void make_context() {
  CUcontext made = nullptr;
  if (succeeds(cuCtxCreate_v2(&made, 0, 0))) took([=] { return cuCtxDestroy_v2(made); });
}

// So much that all stacks together have `bytes` more.
void raise_stack_limit() {
  int units = 0, threads = 0;
  succeeds(cuDeviceGetAttribute(&units, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0)) &&
      succeeds(cuDeviceGetAttribute(&threads, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 0)) &&
      succeeds(
          cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 1024 + bytes / static_cast<size_t>(units) / static_cast<size_t>(threads)));
  took([] { return cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 1024); });
}

// Where another device is current than the one whose memory is taken.
constexpr CUdevice kElsewhere = 1;

void allocate_from_pool_elsewhere() {
  CUmemPoolProps props = {};
  CUmemoryPool pool = nullptr;
  CUdeviceptr block = 0;
  props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  props.location = {CU_MEM_LOCATION_TYPE_DEVICE, kElsewhere};
  if (enter_primary(kElsewhere) && succeeds(cuMemPoolCreate(&pool, &props)) && enter_primary() &&
      succeeds(cuMemAllocFromPoolAsync(&block, bytes, pool, nullptr))) {
    took([=] {
      const CUresult freed = cuMemFreeAsync(block, nullptr);
      return freed == CUDA_SUCCESS ? cuMemPoolDestroy(pool) : freed;
    });
  }
}

void allocate_in_order_elsewhere() {
  CUstream stream = nullptr;
  CUdeviceptr block = 0;
  if (enter_primary(kElsewhere) && succeeds(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING)) && enter_primary() &&
      succeeds(cuMemAllocAsync(&block, bytes, stream))) {
    took([=] { return cuMemFreeAsync(block, stream); });
  }
}

// What is freed just before is not enough.
void free_and_create_physical(CUdevice device) {
  CUdeviceptr block = 0;
  enter_primary(device) && succeeds(cuMemAlloc_v2(&block, bytes / 6 * 5)) && succeeds(cuMemFree_v2(block)) &&
      succeeds(cuCtxSynchronize()) && enter_primary();
  create_physical(false, device);
}

struct Route {
  const char *name;
  bool in_primary;
  void (*take)();
};

const Route kRoutes[] = {
    {"primary", true, [] {}},
    {"context", false, make_context},
    {"second_context", true, make_context},
    {"green", false,
     [] {
       CUdevResource resource = {};
       CUdevResourceDesc description = nullptr;
       CUgreenCtx green = nullptr;
       succeeds(cuDeviceGetDevResource(0, &resource, CU_DEV_RESOURCE_TYPE_SM)) &&
           succeeds(cuDevResourceGenerateDesc(&description, &resource, 1)) &&
           succeeds(cuGreenCtxCreate(&green, description, 0, CU_GREEN_CTX_DEFAULT_STREAM));
       took([=] { return cuGreenCtxDestroy(green); });
     }},
    {"module", true, load_module},
    {"library", true, [] { use_library(false); }},
    {"library_launch", true, [] { use_library(true); }},
    {"heap_launch", true, launch_with_heap},
    {"stack_limit", true, raise_stack_limit},
    {"alloc", true, [] { allocate(bytes); }},
    {"threads", true, allocate_in_threads},
    {"pitched", true,
     [] {
       CUdeviceptr block = 0;
       size_t pitch = 0;
       if (succeeds(cuMemAllocPitch_v2(&block, &pitch, 1 << 20, bytes >> 20, 4))) {
         took_block(block, bytes, nullptr, [=] { return cuMemFree_v2(block); });
       }
     }},
    {"managed", true,
     [] {
       CUdeviceptr block = 0;
       if (succeeds(cuMemAllocManaged(&block, bytes, CU_MEM_ATTACH_GLOBAL))) {
         took_block(block, bytes, nullptr, [=] { return cuMemFree_v2(block); });
       }
     }},
    {"pinned", true,
     [] {
       void *memory = nullptr;
       if (succeeds(cuMemHostAlloc(&memory, bytes, 0))) took([=] { return cuMemFreeHost(memory); });
     }},
    {"array", true, [] { make_array(1); }},
    {"mipmapped", true, [] { make_array(2); }},
    {"physical", true, [] { create_physical(false); }},
    {"physical_first", false, [] { create_physical(false); }},
    {"physical_beside_own", false, [] { free_and_create_physical(0); }},
    {"mapped", true, [] { create_physical(true); }},
    {"async", true, [] { allocate_in_order(bytes, nullptr); }},
    {"streams", true, allocate_in_streams},
    {"own_pool", true, allocate_from_own_pool},
    {"graph_launch", true, [] { run_graph(false); }},
    {"graph_upload", true, [] { run_graph(true); }},
    {"ipc_export", true, lend},
    {"ipc_open", true, borrow},
    {"elsewhere_physical", true, [] { create_physical(false, kElsewhere); }},
    {"elsewhere_physical_first", false, [] { create_physical(false, kElsewhere); }},
    {"elsewhere_physical_without_current", false,
     [] {
       enter_primary(kElsewhere) && succeeds(cuCtxSetCurrent(nullptr));
       create_physical(false, kElsewhere);
     }},
    {"elsewhere_physical_beside_own", false, [] { free_and_create_physical(kElsewhere); }},
    {"elsewhere_own_pool", false, allocate_from_pool_elsewhere},
    {"elsewhere_async", false, allocate_in_order_elsewhere},
    {"elsewhere_graph_launch", false,
     [] {
       if (enter_primary(kElsewhere) && enter_primary()) run_graph(false, kElsewhere);
     }},
};

void check() {
  for (const Taken &one : taken) succeeds(is_intact(one) ? done : CUDA_ERROR_UNKNOWN);
}

void give_back() {
  for (; !taken.empty(); taken.pop_back()) {
    succeeds(cuCtxSetCurrent(taken.back().context)) && succeeds(taken.back().give_back());
    CUcontext left = nullptr;
    if (cuCtxGetCurrent(&left) == CUDA_SUCCESS && left != nullptr) succeeds(cuCtxSynchronize());
  }
}

void answer() {
  dprintf(1, "%d\n", static_cast<int>(done));
}

}  // namespace

int main(int argc, char **argv) {
  if (argc == 1) {
    for (const Route &route : kRoutes) printf("%s\n", route.name);
    return 0;
  }
  for (int i = 1; i < argc && done == CUDA_SUCCESS; i += 2) {
    bytes = i + 1 < argc ? strtoul(argv[i + 1], nullptr, 10) << 20 : 0;
    for (const Route &route : kRoutes) {
      if (strcmp(route.name, argv[i]) == 0 && succeeds(cuInit(0)) && (!route.in_primary || enter_primary())) {
        route.take();
      }
    }
  }
  answer();
  for (char line[16]; fgets(line, sizeof(line), stdin) != nullptr; answer()) {
    line[0] == 'c' ? check() : give_back();
  }
  return done == CUDA_SUCCESS ? 0 : 1;
}
