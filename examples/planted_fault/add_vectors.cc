// Adds two vectors of 16 MiB on the device, in a third. It has a fault: it trusts the last of its three allocations. It
// keeps the address of each block in a host allocation that exists only if the block does. Does not use Ration.
#include <cuda.h>

#include <cstdio>
#include <memory>

namespace {

constexpr size_t kBytes = size_t{16} << 20;

// Nothing: out of memory.
std::unique_ptr<CUdeviceptr> allocate() {
  CUdeviceptr block = 0;
  return cuMemAlloc(&block, kBytes) == CUDA_SUCCESS ? std::make_unique<CUdeviceptr>(block) : nullptr;
}

int give_up() {
  std::puts("add_vectors: out of memory");
  return 1;
}

}  // namespace

int main() {
  CUdevice device = 0;
  CUcontext context = nullptr;
  if (cuInit(0) != CUDA_SUCCESS || cuDeviceGet(&device, 0) != CUDA_SUCCESS ||
      cuDevicePrimaryCtxRetain(&context, device) != CUDA_SUCCESS || cuCtxSetCurrent(context) != CUDA_SUCCESS) {
    std::puts("add_vectors: no CUDA here");
    return 2;
  }
  const std::unique_ptr<CUdeviceptr> a = allocate();
  if (a == nullptr) return give_up();
  const std::unique_ptr<CUdeviceptr> b = allocate();
  if (b == nullptr) return give_up();
  const std::unique_ptr<CUdeviceptr> sum = allocate();
  const volatile CUdeviceptr target = *sum.get();  // the fault: nobody asked whether there is one
  const bool is_done = cuMemsetD8(*a, 1, kBytes) == CUDA_SUCCESS && cuMemsetD8(*b, 2, kBytes) == CUDA_SUCCESS &&
                       cuMemcpyDtoD(target, *a, kBytes) == CUDA_SUCCESS;
  for (const CUdeviceptr block : {*a, *b, *sum}) {
    cuMemFree(block);
  }
  std::puts(is_done ? "add_vectors: done" : "planted_fault: the device failed");
  return is_done ? 0 : 1;
}
