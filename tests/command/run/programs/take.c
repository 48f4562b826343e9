/* take COUNT BYTES KEEP [SIGNAL]: allocates COUNT blocks, prints how many it got, frees all but KEEP of them, and ends
   by SIGNAL. */
#include <cuda.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
  CUdevice device;
  CUcontext context;
  CUdeviceptr blocks[64];
  int wanted = argc > 1 ? atoi(argv[1]) : 0, kept = argc > 3 ? atoi(argv[3]) : 0, got = 0;
  size_t bytes = argc > 2 ? (size_t)atoll(argv[2]) : 0;
  if (wanted > 64 || cuInit(0) != CUDA_SUCCESS || cuDeviceGet(&device, 0) != CUDA_SUCCESS ||
      cuDevicePrimaryCtxRetain(&context, device) != CUDA_SUCCESS || cuCtxSetCurrent(context) != CUDA_SUCCESS) {
    return 1;
  }
  while (got < wanted && cuMemAlloc(&blocks[got], bytes) == CUDA_SUCCESS) got++;
  printf("got %d\n", got);
  fflush(stdout);
  for (wanted = kept; wanted < got; wanted++) {
    if (cuMemFree(blocks[wanted]) != CUDA_SUCCESS) return 1;
  }
  if (argc > 4) raise(atoi(argv[4]));
  return 0;
}
