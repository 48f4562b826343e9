// counted FILE THREADS CALLS [stay]: each thread allocates a block and frees it, CALLS calls in all (0: without end),
// and counts each call that has returned in FILE, eight bytes a thread, which outlive it. The sizes of a thread's
// blocks are (thread + 1) << 22 plus 1, 2, 3 and so on. Then, with `stay`, it waits for the end of its standard input.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <thread>
#include <vector>

#include "fill.h"

namespace {

bool calls_of(int thread, std::uint64_t most, std::atomic<std::uint64_t> &returned) {
  const std::uint64_t base = static_cast<std::uint64_t>(thread + 1) << 22U;
  for (std::uint64_t made = 0; most == 0 || made < most; made += 2) {
    CUdeviceptr block = 0;
    if (cuMemAlloc_v2(&block, base + made / 2 + 1) != CUDA_SUCCESS) {
      return false;
    }
    returned.fetch_add(1);
    if (cuMemFree_v2(block) != CUDA_SUCCESS) {
      return false;
    }
    returned.fetch_add(1);
  }
  return true;
}

}  // namespace

int main(int argc, char **argv) {
  if (argc < 4) {
    return 2;
  }
  const int threads = std::atoi(argv[2]);
  const std::size_t bytes = static_cast<std::size_t>(threads) * sizeof(std::atomic<std::uint64_t>);
  const int file = open(argv[1], O_RDWR | O_CREAT | O_TRUNC, 0600);
  if (file < 0 || ftruncate(file, static_cast<off_t>(bytes)) != 0) {
    return 3;
  }
  void *const counts = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  CUcontext context = nullptr;
  if (counts == MAP_FAILED || cuInit(0) != CUDA_SUCCESS || cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS) {
    return 3;
  }
  std::atomic<bool> good{true};
  std::vector<std::thread> all;
  for (int i = 0; i < threads; ++i) {
    all.emplace_back([&, i] {
      cuCtxSetCurrent(context);
      auto &returned = static_cast<std::atomic<std::uint64_t> *>(counts)[i];
      if (!calls_of(i, std::strtoull(argv[3], nullptr, 10), returned)) {
        good = false;
      }
    });
  }
  for (std::thread &each : all) {
    each.join();
  }
  char byte = 0;
  while (argc > 4 && read(STDIN_FILENO, &byte, 1) > 0) {
  }
  return good ? 0 : 1;
}
