// A program that has no descriptor left at its first call, and as many as it wants later. Prints the codes of the first
// call, of an allocation then, and later of one that is beyond the limit and of one that is within.
#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>

int main() {
  constexpr size_t kBeyond = size_t{2} << 30, kWithin = size_t{1} << 20;
  CUcontext context = nullptr;
  CUdeviceptr block = 0;
  if (cuInit(0) != CUDA_SUCCESS) return 1;  // what is not met by Ration loads nothing
  rlimit before{};
  getrlimit(RLIMIT_NOFILE, &before);
  const int lowest_free = open("/dev/null", O_RDONLY | O_CLOEXEC);
  close(lowest_free);
  const rlimit none{static_cast<rlim_t>(lowest_free), before.rlim_max};
  setrlimit(RLIMIT_NOFILE, &none);
  size_t total = 0;
  const CUresult first = cuDeviceTotalMem_v2(&total, 0);
  const CUresult refused = cuMemAlloc_v2(&block, kWithin);
  setrlimit(RLIMIT_NOFILE, &before);
  const CUresult made = cuCtxCreate_v2(&context, 0, 0);
  const CUresult beyond = cuMemAlloc_v2(&block, kBeyond);
  const CUresult within = cuMemAlloc_v2(&block, kWithin);
  printf("first=%d refused=%d context=%d beyond=%d within=%d free=%d\n", first, refused, made, beyond, within,
         cuMemFree_v2(block));
  return 0;
}
