// Cost of a record of the log: pairs that the pool serves, with and without a log and stacks, and one write(2) of as
// many bytes to the same file system. All pairs are called through 16 functions; with `paths` through 16 in turns of
// many kinds, so that each is among a thousand stacks.
#include <cuda.h>
#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <string>

#include "measured.h"
#include "paired.h"
#include "second_thread.h"

using namespace ration::bench;

namespace {

constexpr int kCalls = 2000;
constexpr int kRecordBytes = 230;  // of an alloc; a free has 180

void pair() {
  CUdeviceptr address = 0;
  cuMemAlloc(&address, 1 << 20);
  cuMemFree(address);
}

// Two functions, so that each bit of `path` leads to another stack.
__attribute__((noinline)) void by_left(int depth, unsigned path);
__attribute__((noinline)) void by_right(int depth, unsigned path) {
  if (depth == 0) {
    pair();
  } else {
    (path & 1U ? by_left : by_right)(depth - 1, path >> 1U);
  }
  asm volatile("" ::: "memory");
}
void by_left(int depth, unsigned path) {
  if (depth == 0) {
    pair();
  } else {
    (path & 1U ? by_left : by_right)(depth - 1, path >> 1U);
  }
  asm volatile("nop" ::: "memory");
}

constexpr int kDepth = 12;  // and four more: of main, and of the C library that calls it
constexpr unsigned kPaths = 1000;

int pairs(bool of_many_paths) {
  const SecondThread second_thread;
  CUdevice device = 0;
  CUcontext context = nullptr;
  if (cuInit(0) != CUDA_SUCCESS || cuDeviceGet(&device, 0) != CUDA_SUCCESS ||
      cuDevicePrimaryCtxRetain(&context, device) != CUDA_SUCCESS || cuCtxSetCurrent(context) != CUDA_SUCCESS) {
    return 1;
  }
  std::printf("pair %f\n", least_ns(kCalls, [&] {
                for (int i = 0; i < kCalls; ++i) by_left(kDepth, of_many_paths ? i % kPaths : 0);
              }));
  return 0;
}

int writes() {
  const int file = open(kBenchLog, O_RDWR | O_CREAT | O_TRUNC, 0600);
  if (file < 0) return 1;
  const std::string record(kRecordBytes, 'a');
  off_t end = 0;
  std::printf("write %f\n", least_ns(kCalls, [&] {
                for (int i = 0; i < kCalls; ++i) end += pwrite(file, record.data(), record.size(), end);
              }));
  return end == static_cast<off_t>(kCalls) * kBatches * kRecordBytes ? 0 : 1;
}

void run(const Arguments &arguments) {
  pin();
  Figures figures;
  for (int round = 0; round < arguments.rounds; ++round) {
    figures.least("write", "ns", child_figures({"/proc/self/exe", "--child", "write"}, Under::kNothing).at("write"));
    unlink(kBenchLog);
    figures.least("pair", "ns", child_figures({"/proc/self/exe", "--child", "pair"}, Under::kPool).at("pair"));
    figures.least("pair_logged", "ns", child_figures({"/proc/self/exe", "--child", "pair"}, Under::kLogged).at("pair"));
    unlink(kBenchLog);
    figures.least("pair_stacks", "ns", child_figures({"/proc/self/exe", "--child", "pair"}, Under::kStacks).at("pair"));
    unlink(kBenchLog);
    figures.least("pair_paths", "ns", child_figures({"/proc/self/exe", "--child", "paths"}, Under::kStacks).at("pair"));
    unlink(kBenchLog);
  }
  figures.report("log", arguments.json);
}

}  // namespace

int main(int count, char **arguments) {
  if (count == 3 && std::strcmp(arguments[1], "--child") == 0) {
    return std::strcmp(arguments[2], "write") == 0 ? writes() : pairs(std::strcmp(arguments[2], "paths") == 0);
  }
  return run_bench("log", count, arguments, 6, run);
}
