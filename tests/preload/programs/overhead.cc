// overhead OP...: code and limits, step by step. Prints after each step its code and the MiB reported as free.
// overhead_test.py has the expected changes. `neighbour`: a second process, without Ration, that from then on takes or
// frees 100 MiB inside each call that is named after `during=`.
#ifndef __CUDA_API_VERSION_INTERNAL
#define __CUDA_API_VERSION_INTERNAL
#endif
#include <cuda.h>
#include <dlfcn.h>
#include <nvml.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <thread>
#include <utility>
#include <vector>

#include "simcuda/simcuda.h"

namespace {

constexpr size_t kMiB = size_t{1} << 20;
constexpr size_t kVariable = 32 * kMiB;
constexpr size_t kBlock = 100 * kMiB;
const char kImage[] = "any bytes are an image here";

CUcontext context;
CUmodule module;
CUlibrary library;
CUkernel kernel;
CUfunction function;
const char *self;

void nothing(const simcuda_launch *) {}

CUresult limit(CUlimit which, size_t value) {
  return cuCtxSetLimit(which, value);
}

// One byte each way: the neighbour has done it when its answer is here.
int to_neighbour[2], from_neighbour[2];

int be_neighbour() {
  CUcontext own = nullptr;
  CUdeviceptr block = 0;
  if (cuInit(0) != CUDA_SUCCESS || cuCtxCreate_v2(&own, 0, 0) != CUDA_SUCCESS) {
    return 1;
  }
  for (char byte = 0; write(1, &byte, 1) == 1 && read(0, &byte, 1) == 1;) {
    if ((block == 0 ? cuMemAlloc_v2(&block, kBlock) : cuMemFree_v2(std::exchange(block, 0))) != CUDA_SUCCESS) {
      return 1;
    }
  }
  return 0;
}

CUresult start_neighbour() {
  if (pipe(to_neighbour) != 0 || pipe(from_neighbour) != 0) {
    return CUDA_ERROR_UNKNOWN;
  }
  if (fork() == 0) {
    dup2(to_neighbour[0], 0);
    dup2(from_neighbour[1], 1);
    close(to_neighbour[1]);  // its input ends with this process
    unsetenv("LD_PRELOAD");
    execl(self, self, "be_neighbour", nullptr);
    _exit(127);
  }
  close(to_neighbour[0]);
  char byte = 0;
  return read(from_neighbour[0], &byte, 1) == 1 ? CUDA_SUCCESS : CUDA_ERROR_UNKNOWN;
}

// It takes its block, or frees it if it has one.
void turn_neighbour() {
  char byte = 0;
  if (write(to_neighbour[1], &byte, 1) != 1 || read(from_neighbour[0], &byte, 1) != 1) {
    abort();
  }
}

CUresult load_nvml() {
  void *nvml = dlopen("libnvidia-ml.so.1", RTLD_NOW);
  auto *init = nvml != nullptr ? reinterpret_cast<decltype(&nvmlInit_v2)>(dlsym(nvml, "nvmlInit_v2")) : nullptr;
  return init != nullptr && init() == NVML_SUCCESS ? CUDA_SUCCESS : CUDA_ERROR_UNKNOWN;
}

// Threads that load and unload code, and allocate and free.
CUresult threads() {
  std::vector<std::thread> all;
  for (int i = 0; i < 8; ++i) {
    all.emplace_back([i] {
      cuCtxSetCurrent(context);
      for (int round = 0; round < 20; ++round) {
        CUmodule own = nullptr;
        CUdeviceptr block = 0;
        if (i % 2 == 0 && cuModuleLoadData(&own, kImage) == CUDA_SUCCESS) {
          cuModuleUnload(own);
        } else if (cuMemAlloc_v2(&block, kMiB) == CUDA_SUCCESS) {
          cuMemFree_v2(block);
        }
      }
    });
  }
  for (std::thread &each : all) {
    each.join();
  }
  return CUDA_SUCCESS;
}

// More contexts until the driver has no memory for one; the code is their number.
CUresult to_the_last_context() {
  int made = 0;
  for (CUcontext another = nullptr; cuCtxCreate_v2(&another, 0, 0) == CUDA_SUCCESS; ++made) {
  }
  cuCtxSetCurrent(context);
  return static_cast<CUresult>(made);
}

struct Step {
  const char *name;
  CUresult (*act)();
};

const Step kSteps[] = {
    {"init", [] { return cuInit(0); }},
    {"nvml", load_nvml},
    {"neighbour", start_neighbour},
    {"take", [] { return turn_neighbour(), CUDA_SUCCESS; }},
    {"context", [] { return cuCtxCreate_v2(&context, 0, 0); }},
    {"primary",
     [] {
       const CUresult code = cuDevicePrimaryCtxRetain(&context, 0);
       return code == CUDA_SUCCESS ? cuCtxSetCurrent(context) : code;
     }},
    {"destroy", [] { return cuCtxDestroy_v2(context); }},
    {"reset", [] { return cuDevicePrimaryCtxReset_v2(0); }},
    {"cuModuleLoad", [] { return cuModuleLoad(&module, self); }},
    {"cuModuleLoadData", [] { return cuModuleLoadData(&module, kImage); }},
    {"cuModuleLoadDataEx", [] { return cuModuleLoadDataEx(&module, kImage, 0, nullptr, nullptr); }},
    {"cuModuleLoadFatBinary", [] { return cuModuleLoadFatBinary(&module, kImage); }},
    {"unload", [] { return cuModuleUnload(module); }},
    {"library", [] { return cuLibraryLoadData(&library, kImage, nullptr, nullptr, 0, nullptr, nullptr, 0); }},
    {"kernel", [] { return cuLibraryGetKernel(&kernel, library, "nothing"); }},
    {"cuKernelGetFunction", [] { return cuKernelGetFunction(&function, kernel); }},
    {"cuLibraryGetModule",
     [] {
       CUmodule its = nullptr;
       return cuLibraryGetModule(&its, library);
     }},
    {"cuLibraryGetGlobal",
     [] {
       CUdeviceptr address = 0;
       return cuLibraryGetGlobal(&address, nullptr, library, "variable");
     }},
    {"unload_library", [] { return cuLibraryUnload(library); }},
    {"launch",
     [] {
       CUfunction its = nullptr;
       const CUresult code = cuModuleGetFunction(&its, module, "nothing");
       return code == CUDA_SUCCESS ? cuLaunchKernel(its, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr) : code;
     }},
    {"stack", [] { return limit(CU_LIMIT_STACK_SIZE, 2048); }},       // 256 MiB
    {"deep_stack", [] { return limit(CU_LIMIT_STACK_SIZE, 8192); }},  // 1,792 MiB
    {"stack_too_large", [] { return limit(CU_LIMIT_STACK_SIZE, 1 << 20); }},
    {"stack_back", [] { return limit(CU_LIMIT_STACK_SIZE, 1024); }},
    {"fifo", [] { return limit(CU_LIMIT_PRINTF_FIFO_SIZE, 17 * kMiB); }},
    {"heap", [] { return limit(CU_LIMIT_MALLOC_HEAP_SIZE, 40 * kMiB); }},
    {"allocate",
     [] {
       CUdeviceptr block = 0;
       return cuMemAlloc_v2(&block, kBlock);
     }},
    {"threads", threads},
    {"to_the_last_context", to_the_last_context},
};

CUresult act(const char *op) {
  if (strncmp(op, "during=", 7) == 0) {
    simcuda_on_call(op + 7, turn_neighbour);
    return CUDA_SUCCESS;
  }
  if (strncmp(op, "killed_in=", 10) == 0) {
    simcuda_on_call(op + 10, [] { kill(getpid(), SIGKILL); });
    return CUDA_SUCCESS;
  }
  for (const Step &step : kSteps) {
    if (strcmp(step.name, op) == 0) {
      return step.act();
    }
  }
  return CUDA_ERROR_NOT_FOUND;
}

}  // namespace

int main(int count, char **arguments) {
  self = arguments[0];
  if (count == 2 && strcmp(arguments[1], "be_neighbour") == 0) {
    return be_neighbour();
  }
  if (simcuda_register_global("variable", kVariable) != 0 ||
      simcuda_register_kernel("nothing", nothing, nullptr, 0) != 0) {
    return 1;
  }
  for (int i = 1; i < count; ++i) {
    const CUresult code = act(arguments[i]);
    size_t free_bytes = 0, total = 0;
    const bool asked = cuMemGetInfo_v2(&free_bytes, &total) == CUDA_SUCCESS;
    printf("%s=%d %ld\n", arguments[i], code, asked ? static_cast<long>(free_bytes / kMiB) : -1);
    fflush(stdout);
  }
  return 0;
}
