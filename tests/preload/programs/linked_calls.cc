// Linked with -lcuda, with plain calls only (a PLT entry, or a load through the GOT with -fno-plt): no address is
// taken.
#include "fill.h"

int main() {
  CUdevice device = 0;
  CUcontext context = nullptr;
  if (cuInit(0) != CUDA_SUCCESS || cuDeviceGet(&device, 0) != CUDA_SUCCESS ||
      cuCtxCreate_v2(&context, 0, device) != CUDA_SUCCESS) {
    return 1;
  }
  preload::Taken taken;
  for (;; ++taken.blocks) {
    CUdeviceptr address = preload::kBefore;
    taken.code = cuMemAlloc_v2(&address, preload::kBlockBytes);
    if (taken.code != CUDA_SUCCESS) {
      taken.null = address == 0;
      preload::print(taken);
      return 0;
    }
  }
}
