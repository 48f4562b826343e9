// lifo PAIRS EXPORTS [memset]: allocates and frees a block of 1 MiB PAIRS times, with `memset` after queuing one on it;
// then prints which driver functions were called meanwhile.
#include <stdlib.h>
#include <string.h>

#include "call_counts.h"
#include "verdict.h"

int main(int argc, char **argv) {
  using namespace preload::pool;
  if (argc < 3) return kOtherFailure;
  const unsigned long long pairs = strtoull(argv[1], nullptr, 10);
  const bool with_memset = argc > 3 && strcmp(argv[3], "memset") == 0;
  Verdict verdict;
  CUcontext context = nullptr;
  CUstream stream = nullptr;
  if (!verdict.succeeded("cuInit", cuInit(0)) ||
      !verdict.succeeded("cuDevicePrimaryCtxRetain", cuDevicePrimaryCtxRetain(&context, 0)) ||
      !verdict.succeeded("cuCtxSetCurrent", cuCtxSetCurrent(context)) ||
      !verdict.succeeded("cuStreamCreate", cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING))) {
    return verdict.status();
  }
  CallCounts counts(argv[2]);
  for (unsigned long long i = 0; i <= pairs && !verdict.failed(); ++i) {
    if (i == 1) counts.start();  // the first one preallocates
    CUdeviceptr block = 0;
    verdict.succeeded("cuMemAlloc", cuMemAlloc_v2(&block, 1 << 20));
    if (with_memset) verdict.succeeded("cuMemsetD8Async", cuMemsetD8Async(block, 1, 512, stream));
    verdict.succeeded("cuMemFree", cuMemFree_v2(block));
  }
  counts.print();
  return verdict.status();
}
