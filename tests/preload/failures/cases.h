// What the cases of this folder share. Each is a failure that was seen in other software of this kind
// (tests/failures.txt), and runs in a process of its own under libration.so: cases_test.py says with which settings.
// Layer: none; C++ over the driver API and what the simulated driver tells beside it.
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
inline constexpr size_t kLimit = 1024 * kMiB;       // of device 0
inline constexpr size_t kOtherLimit = 512 * kMiB;   // of device 1
inline constexpr size_t kSlack = size_t{64} << 10;  // what a pool lacks for its slabs' first granules
inline constexpr CUdeviceptr kUntouched = 0x5a5a'5a5a'5a5a'5a5a;

// A context of its own on a device, current from here on.
CUcontext enter(CUdevice device = 0);

struct Memory {
  size_t free = 0;
  size_t total = 0;
};
Memory memory();

// What the device holds for this process, contexts apart.
unsigned long long held(CUdevice device = 0);

CUdeviceptr take(size_t bytes);
void refused(size_t bytes);

// Everything has been given back: nearly the whole limit can be had as one block.
void all_is_free(size_t limit = kLimit);

// The driver's own function, found in its library as that lies in memory: by no look-up that Ration could meet.
void *behind(const char *name);

template <class Function>
Function *behind_ration(const char *name, Function *) {
  return reinterpret_cast<Function *>(behind(name));
}

// A pool of the driver's, on any device, that keeps whatever it ever got.
CUmemoryPool keeping_pool(CUdevice device);

CUresult make_physical(CUmemGenericAllocationHandle *handle, size_t bytes, CUdevice device);

}  // namespace failures
