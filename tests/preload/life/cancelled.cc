// cancelled ROUNDS: a thread that allocates, frees and submits work is cancelled, ROUNDS times. It ends as a cancelled
// thread does, at a cancellation point of its own, and the process goes on.
#include <cuda.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include <atomic>

namespace {

CUcontext context = nullptr;
CUdeviceptr filled = 0;
CUstream stream = nullptr;
std::atomic<bool> working{false};

void *allocate_free_and_fill(void *) {
  cuCtxSetCurrent(context);
  for (;; pthread_testcancel()) {
    CUdeviceptr block = 0;
    if (cuMemAlloc_v2(&block, 1 << 20) != CUDA_SUCCESS || cuMemFree_v2(block) != CUDA_SUCCESS) return nullptr;
    cuMemsetD8Async(filled, 1, 4096, stream);  // before which that free gets its fence
    working = true;
    working.notify_all();
  }
}

}  // namespace

int main(int, char **argv) {
  if (cuInit(0) != CUDA_SUCCESS || cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS) return 2;
  cuCtxSetCurrent(context);
  if (cuMemAlloc_v2(&filled, 4096) != CUDA_SUCCESS || cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS) {
    return 2;
  }
  const int rounds = atoi(argv[1]);
  int cancelled = 0;
  for (int round = 0; round < rounds; ++round) {
    working = false;
    pthread_t threads[2] = {};
    for (pthread_t &thread : threads) {
      if (pthread_create(&thread, nullptr, allocate_free_and_fill, nullptr) != 0) return 2;
    }
    working.wait(false);
    for (const pthread_t thread : threads) pthread_cancel(thread);
    for (const pthread_t thread : threads) {
      void *result = nullptr;
      pthread_join(thread, &result);
      cancelled += result == PTHREAD_CANCELED ? 1 : 0;
    }
  }
  cuMemFree_v2(filled);
  printf("cancelled: %d\n", cancelled);
  return 0;
}
