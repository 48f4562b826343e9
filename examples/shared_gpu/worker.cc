// worker NAME: an ordinary CUDA program. For each line N on its stdin it allocates N blocks of 64 MiB, or fewer if it
// is refused, and writes a mark into each. At the end of its stdin it verifies the marks and frees all blocks.
#include <cuda_runtime_api.h>

#include <cstdio>
#include <cstring>
#include <iostream>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

constexpr std::size_t kBlock = 64U << 20U;

void must(cudaError_t result, const char *call) {
  if (result != cudaSuccess) throw std::runtime_error(std::string(call) + ": " + cudaGetErrorString(result));
}

std::string mark_of(const std::string &name, std::size_t block) {
  return name + " block " + std::to_string(block);
}

// False: out of memory.
bool take(const std::string &name, std::vector<void *> &blocks) {
  void *block = nullptr;
  const cudaError_t result = cudaMalloc(&block, kBlock);
  if (result == cudaErrorMemoryAllocation) {
    cudaGetLastError();  // clears the error, so that later calls do not report it
    return false;
  }
  must(result, "cudaMalloc");
  const std::string mark = mark_of(name, blocks.size());
  must(cudaMemcpy(static_cast<char *>(block) + kBlock - mark.size(), mark.data(), mark.size(), cudaMemcpyHostToDevice),
       "cudaMemcpy to the device");
  blocks.push_back(block);
  return true;
}

void verify(const std::string &name, const std::vector<void *> &blocks) {
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const std::string mark = mark_of(name, i);
    std::string found(mark.size(), ' ');
    must(cudaMemcpy(found.data(), static_cast<char *>(blocks[i]) + kBlock - mark.size(), mark.size(),
                    cudaMemcpyDeviceToHost),
         "cudaMemcpy from the device");
    if (found != mark) throw std::runtime_error("block " + std::to_string(i) + " has wrong bytes");
  }
}

int work(const std::string &name) {
  must(cudaSetDevice(0), "cudaSetDevice");
  std::vector<void *> blocks;
  std::size_t wanted = 0;
  while (std::cin >> wanted) {
    bool refused = false;
    for (std::size_t i = 0; i < wanted && !refused; ++i) {
      refused = !take(name, blocks);
    }
    std::cout << name << " holds " << blocks.size() * kBlock << (refused ? " refused" : " granted") << std::endl;
  }
  verify(name, blocks);
  for (void *block : blocks) {
    must(cudaFree(block), "cudaFree");
  }
  std::cout << name << " ok" << std::endl;
  return 0;
}

}  // namespace

int main(int count, char **arguments) {
  try {
    return work(count > 1 ? arguments[1] : "worker");
  } catch (const std::exception &failure) {
    std::fprintf(stderr, "worker: %s\n", failure.what());
    return 1;
  }
}
