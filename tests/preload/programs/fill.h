// Used by all programs in this folder, however they find their functions. Allocates 100 MiB blocks until refused.
// Prints the count, the code of the refusal, and whether the refused call set the address to 0, as the driver does.
// Layer: none; C++ over the driver API. Writes with write(2), which works before and after stdio.
#pragma once

#ifndef __CUDA_API_VERSION_INTERNAL
#define __CUDA_API_VERSION_INTERNAL  // the exports' own names
#endif
#include <cuda.h>
#include <stdio.h>

namespace preload {

inline constexpr size_t kBlockBytes = size_t{100} << 20;
inline constexpr CUdeviceptr kBefore = 0x5a5a'5a5a'5a5a'5a5a;  // what an output parameter holds before the call

struct Calls {
  decltype(&::cuInit) init;
  decltype(&::cuDeviceGet) device_get;
  decltype(&::cuCtxCreate_v2) context_create;  // null if the driver has no contexts
  decltype(&::cuMemAlloc_v2) allocate;
};

// Looks up every function with `find`, which takes an export's name and returns a void*.
template <class Find>
Calls calls_found_by(Find find) {
  return {reinterpret_cast<decltype(&::cuInit)>(find("cuInit")),
          reinterpret_cast<decltype(&::cuDeviceGet)>(find("cuDeviceGet")),
          reinterpret_cast<decltype(&::cuCtxCreate_v2)>(find("cuCtxCreate_v2")),
          reinterpret_cast<decltype(&::cuMemAlloc_v2)>(find("cuMemAlloc_v2"))};
}

struct Taken {
  int blocks = 0;
  CUresult code = CUDA_SUCCESS;
  bool null = false;  // the address after the refusal
};

inline Taken take_all(decltype(&::cuMemAlloc_v2) allocate) {
  Taken taken;
  for (;;) {
    CUdeviceptr address = kBefore;
    taken.code = allocate(&address, kBlockBytes);
    if (taken.code != CUDA_SUCCESS) {
      taken.null = address == 0;
      return taken;
    }
    ++taken.blocks;
  }
}

inline void print(const Taken &taken) {
  dprintf(1, "blocks=%d code=%d null=%d\n", taken.blocks, static_cast<int>(taken.code), taken.null ? 1 : 0);
}

// Prints a line and returns false if the driver cannot be used.
inline bool start(const Calls &calls) {
  if (calls.init == nullptr || calls.device_get == nullptr || calls.allocate == nullptr) {
    dprintf(2, "a function was not found\n");
    return false;
  }
  CUdevice device = 0;
  CUcontext context = nullptr;
  CUresult code = calls.init(0);
  code = code == CUDA_SUCCESS ? calls.device_get(&device, 0) : code;
  if (code == CUDA_SUCCESS && calls.context_create != nullptr) {
    code = calls.context_create(&context, 0, device);
  }
  if (code != CUDA_SUCCESS) {
    dprintf(2, "no context: %d\n", static_cast<int>(code));
  }
  return code == CUDA_SUCCESS;
}

// Returns the exit status of a program.
inline int fill(const Calls &calls) {
  if (!start(calls)) {
    return 1;
  }
  print(take_all(calls.allocate));
  return 0;
}

}  // namespace preload
