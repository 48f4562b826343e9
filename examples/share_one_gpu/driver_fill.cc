// driver_fill [NAME]: an ordinary CUDA program that uses the driver API and is linked to libcuda.so.1.
#include <cuda.h>

#include <cstdio>
#include <stdexcept>

#include "fill.h"

namespace {

void must(CUresult result, const char *call) {
  const char *name = nullptr;
  if (result == CUDA_SUCCESS) return;
  cuGetErrorName(result, &name);
  throw std::runtime_error(std::string(call) + ": " + (name ? name : "unknown error"));
}

class DriverGpu : public Gpu {
 public:
  DriverGpu() {
    must(cuInit(0), "cuInit");
    must(cuDeviceGet(&device_, 0), "cuDeviceGet");
    must(cuDevicePrimaryCtxRetain(&context_, device_), "cuDevicePrimaryCtxRetain");
    must(cuCtxSetCurrent(context_), "cuCtxSetCurrent");
  }
  ~DriverGpu() override { cuDevicePrimaryCtxRelease(device_); }

  std::string name() override {
    char name[256] = "";
    must(cuDeviceGetName(name, sizeof name, device_), "cuDeviceGetName");
    return name;
  }
  std::uint64_t total() override {
    std::size_t bytes = 0;
    must(cuDeviceTotalMem(&bytes, device_), "cuDeviceTotalMem");
    return bytes;
  }
  Memory memory() override {
    std::size_t free = 0, total = 0;
    must(cuMemGetInfo(&free, &total), "cuMemGetInfo");
    return {free, total};
  }
  Answer allocate(std::uint64_t bytes, std::uint64_t &address) override {
    CUdeviceptr pointer = address;
    const CUresult result = cuMemAlloc(&pointer, bytes);
    address = pointer;
    if (result == CUDA_SUCCESS) return Answer::kGranted;
    return result == CUDA_ERROR_OUT_OF_MEMORY ? Answer::kOutOfMemory : Answer::kOtherError;
  }
  void release(std::uint64_t address) override { must(cuMemFree(address), "cuMemFree"); }
  void write(std::uint64_t address, const void *from, std::size_t bytes) override {
    must(cuMemcpyHtoD(address, from, bytes), "cuMemcpyHtoD");
  }
  void read(void *to, std::uint64_t address, std::size_t bytes) override {
    must(cuMemcpyDtoH(to, address, bytes), "cuMemcpyDtoH");
  }

 private:
  CUdevice device_ = 0;
  CUcontext context_ = nullptr;
};

}  // namespace

int main(int count, char **arguments) {
  try {
    DriverGpu gpu;
    return fill(count > 1 ? arguments[1] : "driver_fill", gpu);
  } catch (const std::exception &failure) {
    std::fprintf(stderr, "driver_fill: %s\n", failure.what());
    return 1;
  }
}
