// ration-example [NAME]: an ordinary CUDA program that uses the runtime API.
#include <cuda_runtime_api.h>

#include <cstdio>
#include <stdexcept>
#include <string_view>

#include "fill.h"

namespace {

constexpr const char *kHelp =
    "Usage: ration-example [NAME]\n\n"
    "A CUDA program to try ration on. It allocates 90% of device 0 in large blocks, writes and reads them, allocates\n"
    "until it is refused, and frees everything; NAME begins each line that it prints (default: ration-example).\n"
    "It waits twice for a line on stdin, so that others can be watched meanwhile; with </dev/null it does not.\n\n"
    "Example: ration run --sim 16GiB --limit 40% -- ration-example a </dev/null\n\n"
    "Exit status: 0, or 1 if a call did not behave as documented.\n";

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
  const std::string_view first = count > 1 ? arguments[1] : "";
  if (first == "-h" || first == "--help") {
    std::fputs(kHelp, stdout);
    return 0;
  }
  if (count > 2 || first.substr(0, 1) == "-") {
    std::fputs("ration-example: it takes one argument, a name (ration-example --help)\n", stderr);
    return 2;
  }
  try {
    RuntimeGpu gpu;
    return fill(count > 1 ? arguments[1] : "ration-example", gpu);
  } catch (const std::exception &failure) {
    std::fprintf(stderr, "ration-example: %s\n", failure.what());
    return 1;
  }
}
