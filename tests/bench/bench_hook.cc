// Cost of a hook per driver call, linked directly to the simulated driver, whose own time is part of both figures.
#include <cuda.h>

#include <cstdio>
#include <cstring>

#include "paired.h"
#include "second_thread.h"

using namespace ration::bench;

namespace {

int child() {
  const SecondThread second_thread;
  CUdevice device = 0;
  CUcontext context = nullptr;
  CUdeviceptr block = 0;
  if (cuInit(0) != CUDA_SUCCESS || cuDeviceGet(&device, 0) != CUDA_SUCCESS ||
      cuDevicePrimaryCtxRetain(&context, device) != CUDA_SUCCESS || cuCtxSetCurrent(context) != CUDA_SUCCESS ||
      cuMemAlloc(&block, 1 << 20) != CUDA_SUCCESS) {
    return 1;
  }
  constexpr int kCalls = 2000;
  std::printf("alloc_free %f\n", least_ns(kCalls, [] {
                for (int i = 0; i < kCalls; ++i) {
                  CUdeviceptr address = 0;
                  cuMemAlloc(&address, 1 << 20);
                  cuMemFree(address);
                }
              }));
  std::printf("mem_get_info %f\n", least_ns(kCalls, [] {
                std::size_t free = 0, total = 0;
                for (int i = 0; i < kCalls; ++i) cuMemGetInfo(&free, &total);
              }));
  std::printf("pointer_attribute %f\n", least_ns(kCalls, [block] {
                unsigned int type = 0;
                for (int i = 0; i < kCalls; ++i) cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, block);
              }));
  std::printf("not_hooked %f\n", least_ns(kCalls, [] {
                CUcontext current = nullptr;
                for (int i = 0; i < kCalls; ++i) cuCtxGetCurrent(&current);
              }));
  return 0;
}

}  // namespace

int main(int count, char **arguments) {
  if (count == 2 && std::strcmp(arguments[1], "--child") == 0) return child();
  return compare_children("hook", count, arguments);
}
