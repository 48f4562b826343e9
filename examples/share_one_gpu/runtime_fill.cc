// runtime_fill [NAME]: an ordinary CUDA program that uses the runtime API.
#include <cuda_runtime_api.h>

#include <cstdio>
#include <stdexcept>

#include "fill.h"

namespace {

void must(cudaError_t result, const char *call) {
  if (result != cudaSuccess) throw std::runtime_error(std::string(call) + ": " + cudaGetErrorString(result));
}

void *pointer_of(std::uint64_t address) {
  return reinterpret_cast<void *>(address);
}

class RuntimeGpu : public Gpu {
 public:
  RuntimeGpu() {
    must(cudaSetDevice(0), "cudaSetDevice");
    must(cudaGetDeviceProperties(&properties_, 0), "cudaGetDeviceProperties");
  }

  std::string name() override { return properties_.name; }
  std::uint64_t total() override { return properties_.totalGlobalMem; }
  Memory memory() override {
    std::size_t free = 0, total = 0;
    must(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
    return {free, total};
  }
  Answer allocate(std::uint64_t bytes, std::uint64_t &address) override {
    void *pointer = pointer_of(address);
    const cudaError_t result = cudaMalloc(&pointer, bytes);
    address = reinterpret_cast<std::uint64_t>(pointer);
    if (result == cudaSuccess) return Answer::kGranted;
    cudaGetLastError();  // the refusal was expected; later calls must not report it
    return result == cudaErrorMemoryAllocation ? Answer::kOutOfMemory : Answer::kOtherError;
  }
  void release(std::uint64_t address) override { must(cudaFree(pointer_of(address)), "cudaFree"); }
  void write(std::uint64_t address, const void *from, std::size_t bytes) override {
    must(cudaMemcpy(pointer_of(address), from, bytes, cudaMemcpyHostToDevice), "cudaMemcpy to the device");
  }
  void read(void *to, std::uint64_t address, std::size_t bytes) override {
    must(cudaMemcpy(to, pointer_of(address), bytes, cudaMemcpyDeviceToHost), "cudaMemcpy from the device");
  }

 private:
  cudaDeviceProp properties_{};
};

}  // namespace

int main(int count, char **arguments) {
  try {
    RuntimeGpu gpu;
    return fill(count > 1 ? arguments[1] : "runtime_fill", gpu);
  } catch (const std::exception &failure) {
    std::fprintf(stderr, "runtime_fill: %s\n", failure.what());
    return 1;
  }
}
