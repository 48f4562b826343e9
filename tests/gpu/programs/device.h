// Shared by the programs of this folder: a context on device 0, and blocks with a pattern at both ends. Driver API
// only, so that they also run on the simulated driver.
#pragma once
#include <cuda.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace gpu {

inline constexpr std::size_t kMiB = std::size_t{1} << 20;

inline void must(CUresult code, const char *what) {
  if (code == CUDA_SUCCESS) return;
  std::fprintf(stderr, "%s answered %d\n", what, static_cast<int>(code));
  std::exit(1);
}
#define MUST(call) ::gpu::must(call, #call)

inline void say(const std::string &line) {
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

inline void use_device() {
  CUcontext context = nullptr;
  MUST(cuInit(0));
  MUST(cuDevicePrimaryCtxRetain(&context, 0));
  MUST(cuCtxSetCurrent(context));
}

// Blocks on the device, kept until the program ends.
class Blocks {
 public:
  // Returns the driver's result code; a granted block is written at both ends.
  CUresult take(std::size_t bytes) {
    CUdeviceptr address = 0;
    if (const CUresult code = cuMemAlloc(&address, bytes); code != CUDA_SUCCESS) return code;
    MUST(cuMemsetD8(address, pattern(blocks_.size()), kEnd));
    MUST(cuMemsetD8(address + bytes - kEnd, pattern(blocks_.size()), kEnd));
    blocks_.push_back({address, bytes});
    held_ += bytes;
    return CUDA_SUCCESS;
  }

  // Allocates another `bytes` in blocks of at most 256 MiB. Returns the code of the first refusal, or CUDA_SUCCESS.
  CUresult take_in_parts(std::size_t bytes) {
    const std::size_t end = held_ + bytes;
    while (held_ + kEnd <= end) {
      const std::size_t rest = end - held_;
      if (const CUresult code = take(rest < 256 * kMiB ? rest : 256 * kMiB); code != CUDA_SUCCESS) return code;
    }
    return CUDA_SUCCESS;
  }

  // Frees the newest block.
  void drop() {
    MUST(cuMemFree(blocks_.back().address));
    held_ -= blocks_.back().bytes;
    blocks_.pop_back();
  }

  // True if every block still has its pattern.
  bool verify() const {
    bool all_right = true;
    for (std::size_t i = 0; i < blocks_.size(); ++i) {
      unsigned char ends[2] = {};
      MUST(cuMemcpyDtoH(&ends[0], blocks_[i].address, 1));
      MUST(cuMemcpyDtoH(&ends[1], blocks_[i].address + blocks_[i].bytes - 1, 1));
      all_right = all_right && ends[0] == pattern(i) && ends[1] == pattern(i);
    }
    return all_right;
  }

  void free_all() {
    for (const Block &block : blocks_) MUST(cuMemFree(block.address));
    blocks_.clear();
    held_ = 0;
  }

  std::size_t held() const { return held_; }
  std::size_t count() const { return blocks_.size(); }

 private:
  static constexpr std::size_t kEnd = 4096;
  struct Block {
    CUdeviceptr address;
    std::size_t bytes;
  };
  static unsigned char pattern(std::size_t number) { return static_cast<unsigned char>(number * 37 + 1); }

  std::vector<Block> blocks_;
  std::size_t held_ = 0;
};

}  // namespace gpu
