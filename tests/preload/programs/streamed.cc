// streamed: allocates and frees on streams, some blocks on another one than they are freed on; prints the handles of
// its two streams.
#include <cstdio>

#include "fill.h"

int main() {
  constexpr size_t kBytes = 1 << 20;
  CUcontext context = nullptr;
  CUstream first = nullptr;
  CUstream second = nullptr;
  CUmemoryPool pool = nullptr;
  CUdeviceptr block[6] = {};
  const auto ok = [](CUresult result) { return result == CUDA_SUCCESS; };
  const bool good =
      ok(cuInit(0)) && ok(cuDevicePrimaryCtxRetain(&context, 0)) && ok(cuCtxSetCurrent(context)) &&
      ok(cuStreamCreate(&first, 0)) && ok(cuStreamCreate(&second, 0)) && ok(cuDeviceGetDefaultMemPool(&pool, 0)) &&
      ok(cuMemAllocAsync(&block[0], kBytes, first)) && ok(cuMemAllocAsync(&block[1], 2 * kBytes, second)) &&
      ok(cuMemAllocFromPoolAsync(&block[2], 3 * kBytes, pool, second)) &&
      ok(cuMemAllocAsync(&block[3], 4 * kBytes, nullptr)) && ok(cuMemAllocAsync_ptsz(&block[4], 5 * kBytes, nullptr)) &&
      ok(cuMemAlloc_v2(&block[5], 6 * kBytes)) && ok(cuMemFreeAsync(block[0], second)) &&
      ok(cuMemFreeAsync(block[3], nullptr)) && ok(cuMemFreeAsync_ptsz(block[4], nullptr));
  std::printf("%zu %zu\n", reinterpret_cast<size_t>(first), reinterpret_cast<size_t>(second));
  return good ? 0 : 1;
}
