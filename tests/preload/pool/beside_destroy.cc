// beside_destroy: one thread destroys a context whose work runs until the program lets it go; another allocates what
// only a block that was freed beside that work could give. Prints how the second thread waits, `sleeps` or `spins`, by
// its processor time beside that of this thread, which a busy machine leaves in proportion; then both codes.
#include <cuda.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <thread>

namespace {

constexpr size_t kMiB = size_t{1} << 20;
constexpr int kLooks = 5000;
constexpr double kWatched = 0.1;  // seconds of processor time

std::atomic<int> let_go{0};
std::atomic<int> running{0};

void until_let_go(void *) {
  running = 1;
  running.notify_all();
  let_go.wait(0);
}

// The letter after the name in parentheses: R runs, S sleeps.
char state_of(pid_t thread) {
  char path[64], line[256] = "";
  snprintf(path, sizeof(path), "/proc/self/task/%d/stat", thread);
  if (FILE *file = fopen(path, "r")) {
    if (fgets(line, sizeof(line), file) == nullptr) line[0] = 0;
    fclose(file);
  }
  const char *end = strrchr(line, ')');
  return end != nullptr && end[1] != 0 ? end[2] : 0;
}

// At most kLooks times.
void look_until_asleep(const std::atomic<pid_t> &thread, const std::atomic<bool> &over = false) {
  for (int looks = 0; looks < kLooks && !over && (thread == 0 || state_of(thread) != 'S'); ++looks) {
  }
}

double processor_seconds(pthread_t thread) {
  clockid_t clock{};
  timespec now{};
  if (pthread_getcpuclockid(thread, &clock) != 0 || clock_gettime(clock, &now) != 0) return 0;
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

void need(CUresult result, const char *call) {
  if (result == CUDA_SUCCESS) return;
  printf("%s: %d\n", call, static_cast<int>(result));
  exit(1);
}

}  // namespace

int main() {
  CUcontext primary = nullptr, other = nullptr;
  CUstream stream = nullptr;
  CUdeviceptr block = 0;
  need(cuInit(0), "cuInit");
  need(cuDevicePrimaryCtxRetain(&primary, 0), "cuDevicePrimaryCtxRetain");
  need(cuCtxCreate_v2(&other, 0, 0), "cuCtxCreate");
  need(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
  need(cuLaunchHostFunc(stream, until_let_go, nullptr), "cuLaunchHostFunc");
  running.wait(0);
  need(cuCtxSetCurrent(primary), "cuCtxSetCurrent");
  need(cuMemAlloc_v2(&block, 40 * kMiB), "cuMemAlloc");
  need(cuMemFree_v2(block), "cuMemFree");

  std::atomic<pid_t> destroying{0}, allocating{0};
  std::atomic<bool> over{false};
  CUresult destroyed = CUDA_SUCCESS, allocated = CUDA_SUCCESS;
  std::thread destroyer([&] {
    destroying = gettid();
    destroyed = cuCtxDestroy_v2(other);
  });
  look_until_asleep(destroying);
  std::thread allocator([&] {
    need(cuCtxSetCurrent(primary), "cuCtxSetCurrent");
    allocating = gettid();
    allocated = cuMemAlloc_v2(&block, 40 * kMiB);
    over = true;
  });
  look_until_asleep(allocating, over);
  double own = processor_seconds(pthread_self());
  const pthread_t waiter = allocator.native_handle();
  double taken = processor_seconds(waiter);
  while (processor_seconds(pthread_self()) - own < kWatched) {
  }
  own = processor_seconds(pthread_self()) - own;
  taken = processor_seconds(waiter) - taken;
  puts(over ? "does not wait" : taken < own / 4 ? "sleeps" : "spins");
  let_go = 1;
  let_go.notify_all();
  destroyer.join();
  allocator.join();
  printf("cuCtxDestroy: %d\ncuMemAlloc: %d\n", static_cast<int>(destroyed), static_cast<int>(allocated));
}
