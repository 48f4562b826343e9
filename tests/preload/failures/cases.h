// Shared by the cases of this folder. Each case is a failure seen in other software of this kind (tests/failures.txt).
// It runs in a separate process under libration.so; cases_test.py sets the environment.
// Layer: none; C++ over the driver API and the simulated driver's own queries.
#pragma once

#ifndef __CUDA_API_VERSION_INTERNAL
#define __CUDA_API_VERSION_INTERNAL  // the exports' own names
#endif
#include <cuda.h>
#include <simcuda/simcuda.h>

#include "catch.h"

namespace failures {

inline constexpr size_t kMiB = size_t{1} << 20;
inline constexpr size_t kGranule = 512;
inline constexpr size_t kLimit = 1024 * kMiB;                  // of device 0
inline constexpr size_t kOtherLimit = 512 * kMiB;              // of device 1
inline constexpr size_t kSlack = size_t{64} << 10;             // the granules that a pool keeps for its slabs
inline constexpr CUdeviceptr kBefore = 0x5a5a'5a5a'5a5a'5a5a;  // what an output parameter holds before the call

// A new context on a device, made current.
CUcontext enter(CUdevice device = 0);

struct Memory {
  size_t free = 0;
  size_t total = 0;
};
Memory memory();

// The bytes that the device holds for this process, excluding contexts.
unsigned long long held(CUdevice device = 0);

CUdeviceptr take(size_t bytes);
void refused(size_t bytes);

// Checks that all memory was freed, by allocating nearly the whole limit as one block.
void all_is_free(size_t limit = kLimit);

// The driver's own function, read from its library in memory, so that Ration cannot intercept the look-up.
void *symbol_in_driver(const char *name);

template <class Function>
Function *behind_ration(const char *name, Function *) {
  return reinterpret_cast<Function *>(symbol_in_driver(name));
}

// A driver pool, on any device, that never releases memory by itself.
CUmemoryPool keeping_pool(CUdevice device);

CUresult make_physical(CUmemGenericAllocationHandle *handle, size_t bytes, CUdevice device);

}  // namespace failures
