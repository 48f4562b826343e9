// diagnostics HOW [FILE]: programs that diagnostics must not disturb. HOW:
//   takes          grows, makes room for managed memory, and is refused
//   holds          frees what it took, which stays in its pool, until its standard input ends
//   uses           the same without freeing it
//   lacks          takes 192 MiB, of which another process may hold a part
//   forks          eight threads allocate and fork children, which make calls of their own
//   reuses         closes standard error after its first call, so that FILE gets its number
//   reuses_before  the same before its first call
//   closes_files   closes every descriptor but the standard streams after its first call, and opens FILE
//   lasts          allocates and frees until it is killed
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "fill.h"

namespace {

constexpr size_t kMiB = size_t{1} << 20;
constexpr int kThreads = 8;
constexpr int kChildren = 6;  // of each thread

bool start() {
  CUcontext context = nullptr;
  return cuInit(0) == CUDA_SUCCESS && cuDevicePrimaryCtxRetain(&context, 0) == CUDA_SUCCESS &&
         cuCtxSetCurrent(context) == CUDA_SUCCESS;
}

CUresult take(size_t bytes, bool keep = false) {
  CUdeviceptr address = 0;
  const CUresult code = cuMemAlloc_v2(&address, bytes);
  return code != CUDA_SUCCESS || keep ? code : cuMemFree_v2(address);
}

int takes() {
  CUdeviceptr managed = 0;
  const bool done = start() && take(100 * kMiB) == CUDA_SUCCESS && take(180 * kMiB) == CUDA_SUCCESS &&
                    cuMemAllocManaged(&managed, 200 * kMiB, CU_MEM_ATTACH_GLOBAL) == CUDA_SUCCESS &&
                    take(200 * kMiB) == CUDA_ERROR_OUT_OF_MEMORY;
  return done ? 0 : 1;
}

int holds(bool uses) {
  char end = 0;
  const bool done = start() && take(192 * kMiB, uses) == CUDA_SUCCESS;
  dprintf(1, "%s\n", done ? "holds" : "failed");
  return done && read(0, &end, 1) == 0 ? 0 : 1;
}

// A child of a process that uses CUDA has no working driver; what it gets are the driver's codes.
int in_child() {
  return cuInit(0) != CUDA_SUCCESS && take(kMiB) != CUDA_SUCCESS ? 0 : 1;
}

int forks() {
  std::atomic<int> wrong{start() ? 0 : 1};
  CUcontext context = nullptr;
  cuCtxGetCurrent(&context);
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      wrong += cuCtxSetCurrent(context) == CUDA_SUCCESS ? 0 : 1;
      for (int n = 0; n < kChildren; ++n) {
        const pid_t child = fork();
        if (child == 0) {
          _exit(in_child());
        }
        for (int block = 0; block < 20; ++block) {
          const CUresult code = take(static_cast<size_t>(i + 1) * 8 * kMiB);
          wrong += code == CUDA_SUCCESS || code == CUDA_ERROR_OUT_OF_MEMORY ? 0 : 1;
        }
        int status = 0;
        wrong += child > 0 && waitpid(child, &status, 0) == child && status == 0 ? 0 : 1;
      }
    });
  }
  for (std::thread &thread : threads) {
    thread.join();
  }
  return wrong == 0 ? 0 : 1;
}

// Exits with 3 where the file gets another number.
int reuses(const char *file, bool before) {
  const bool started = before || start();
  close(2);
  if (open(file, O_RDWR | O_CREAT, 0600) != 2) {
    return 3;
  }
  return started && (!before || start()) && take(100 * kMiB) == CUDA_SUCCESS && take(400 * kMiB) != CUDA_SUCCESS ? 0
                                                                                                                 : 1;
}

int closes_files(const char *file) {
  const bool started = start();
  for (int number = 3; number < 4096; ++number) {
    close(number);
  }
  const int opened = open(file, O_WRONLY | O_CREAT, 0600);
  for (int number = 512; number < 1024; ++number) {
    dup2(opened, number);
  }
  take(400 * kMiB);
  return started ? 0 : 1;
}

}  // namespace

int main(int argc, char **argv) {
  const std::string how = argc > 1 ? argv[1] : "";
  const char *file = argc > 2 ? argv[2] : "";
  if (how == "takes") {
    return takes();
  }
  if (how == "holds" || how == "uses") {
    return holds(how == "uses");
  }
  if (how == "lacks") {
    return start() && take(192 * kMiB) == CUDA_SUCCESS ? 0 : 1;
  }
  if (how == "forks") {
    return forks();
  }
  if (how == "reuses" || how == "reuses_before") {
    return reuses(file, how == "reuses_before");
  }
  if (how == "closes_files") {
    return closes_files(file);
  }
  for (bool going = start() && how == "lasts"; going;) {
    going = take(100 * kMiB) != CUDA_ERROR_NOT_INITIALIZED && take(400 * kMiB) == CUDA_ERROR_OUT_OF_MEMORY;
  }
  return 2;
}
