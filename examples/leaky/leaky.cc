// A server that keeps a buffer of each request it could not answer: `leaky [REQUESTS]`. An ordinary CUDA program, which
// calls the driver API and knows nothing of Ration.
#include <cuda.h>

#include <cstdio>
#include <cstdlib>

namespace {

constexpr size_t kWeights = 128u << 20;
constexpr size_t kRequest = 4u << 20;

CUdeviceptr take(size_t bytes) {
  CUdeviceptr block = 0;
  if (cuMemAlloc_v2(&block, bytes) != CUDA_SUCCESS) {
    std::printf("leaky: out of memory\n");
    std::exit(1);
  }
  return block;
}

bool answer(int request) {
  return request % 8 != 7;
}

// The mistake: it returns before the free.
void serve_request(int request) {
  const CUdeviceptr buffer = take(kRequest);
  if (!answer(request)) {
    return;
  }
  cuMemFree_v2(buffer);
}

CUdeviceptr load_weights() {
  return take(kWeights);
}

}  // namespace

int main(int argc, char **argv) {
  const int requests = argc > 1 ? std::atoi(argv[1]) : 400;
  CUcontext context = nullptr;
  if (cuInit(0) != CUDA_SUCCESS || cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS ||
      cuCtxSetCurrent(context) != CUDA_SUCCESS) {
    std::printf("leaky: no device\n");
    return 1;
  }
  const CUdeviceptr weights = load_weights();
  for (int request = 0; request < requests; ++request) {
    serve_request(request);
  }
  cuMemFree_v2(weights);
  std::printf("leaky: served %d requests\n", requests);
  return 0;
}
