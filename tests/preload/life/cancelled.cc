// cancelled ROUNDS: a thread that allocates and frees is cancelled, ROUNDS times. It ends as a cancelled thread does,
// at a cancellation point of its own, and the process goes on.
#include <cuda.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include <atomic>

namespace {

CUcontext context = nullptr;
std::atomic<bool> working{false};

void *allocate_and_free(void *) {
  cuCtxSetCurrent(context);
  for (;; pthread_testcancel()) {
    CUdeviceptr block = 0;
    if (cuMemAlloc_v2(&block, 1 << 20) != CUDA_SUCCESS || cuMemFree_v2(block) != CUDA_SUCCESS) return nullptr;
    working = true;
    working.notify_all();
  }
}

}  // namespace

int main(int, char **argv) {
  if (cuInit(0) != CUDA_SUCCESS || cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS) return 2;
  const int rounds = atoi(argv[1]);
  int cancelled = 0;
  for (int round = 0; round < rounds; ++round) {
    working = false;
    pthread_t thread{};
    void *result = nullptr;
    if (pthread_create(&thread, nullptr, allocate_and_free, nullptr) != 0) return 2;
    working.wait(false);
    pthread_cancel(thread);
    pthread_join(thread, &result);
    cancelled += result == PTHREAD_CANCELED ? 1 : 0;
  }
  printf("cancelled: %d\n", cancelled);
  return 0;
}
