// Cost of a hook of copies, of no bytes, linked directly to the simulated driver, whose own time is part of both
// figures: while all contexts are of one device, and when there is a context of another; without a stream before any
// block has SYNC_MEMOPS, and next to and on a block that has.
#include <cuda.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "paired.h"
#include "second_thread.h"

using namespace ration::bench;

namespace {

bool in_context_of(int ordinal) {
  CUdevice device = 0;
  CUcontext context = nullptr;
  return cuDeviceGet(&device, ordinal) == CUDA_SUCCESS && cuDevicePrimaryCtxRetain(&context, device) == CUDA_SUCCESS &&
         cuCtxSetCurrent(context) == CUDA_SUCCESS;
}

template <class Copy>
bool say(const char *name, const Copy &copy) {
  constexpr int kCalls = 2000;
  if (copy() != CUDA_SUCCESS) {
    return false;
  }
  std::printf("%s %f\n", name, least_ns(kCalls, [&copy] {
                for (int i = 0; i < kCalls; ++i) copy();
              }));
  return true;
}

bool say_copies(const char *name, CUdeviceptr to, CUdeviceptr from) {
  return say(name, [=] { return cuMemcpyDtoDAsync(to, from, 0, nullptr); });
}

bool say_synchronous(const char *name, CUdeviceptr to, CUdeviceptr from) {
  return say(name, [=] { return cuMemcpyDtoD(to, from, 0); });
}

bool mark(CUdeviceptr block) {
  const unsigned on = 1;
  return cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, block) == CUDA_SUCCESS;
}

int child() {
  const SecondThread second_thread;
  setenv("SIMCUDA_DEVICES", "2x16GiB", 1);
  setenv("SIMCUDA_COSTS", "0", 1);
  CUdeviceptr from = 0, to = 0, marked = 0;
  void *host = nullptr;
  const bool good =
      cuInit(0) == CUDA_SUCCESS && in_context_of(0) && cuMemAlloc(&from, 1 << 20) == CUDA_SUCCESS &&
      cuMemAlloc(&to, 1 << 20) == CUDA_SUCCESS && cuMemAlloc(&marked, 1 << 20) == CUDA_SUCCESS &&
      say_copies("one_device", to, from) && say_synchronous("synchronous", to, from) && mark(marked) &&
      say_synchronous("synchronous_beside_marked", to, from) && say_synchronous("synchronous_marked", marked, from) &&
      in_context_of(1) && in_context_of(0) && say_copies("two_devices", to, from) &&
      cuMemAllocHost(&host, 1 << 20) == CUDA_SUCCESS &&
      say_copies("two_devices_host_memory", reinterpret_cast<CUdeviceptr>(host), reinterpret_cast<CUdeviceptr>(host));
  return good ? 0 : 1;
}

}  // namespace

int main(int count, char **arguments) {
  if (count == 2 && std::strcmp(arguments[1], "--child") == 0) return child();
  return compare_children("copy", count, arguments, Under::kPool);
}
