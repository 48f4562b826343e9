// A library that allocates one block in a function of its own name (STACKS_PLUGIN).
#include <cuda.h>

extern "C" __attribute__((noinline)) CUresult STACKS_PLUGIN() {
  CUdeviceptr block = 0;
  const CUresult result = cuMemAlloc_v2(&block, 1 << 20);
  asm volatile("" ::: "memory");
  return result;
}

extern "C" __attribute__((visibility("default"))) CUresult take() {
  const CUresult result = STACKS_PLUGIN();
  asm volatile("" ::: "memory");
  return result;
}
