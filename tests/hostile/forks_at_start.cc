// A thread's first call loads Ration's core (loading.cc); meanwhile the first thread forks. Prints whether the core was
// loaded when the child was made, the codes of the child's calls or the signal that ended it, errno of the first call,
// and for how many milliseconds the fork waited.
#include "forks_at_start.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>

extern "C" {
__attribute__((visibility("default"))) LoadingCore loading_core;
}

namespace {

int error_of_first = 0;

void *first(void *) {
  errno = EXDEV;
  cuMemFree_v2(0);  // answers that nothing is initialised, and initialises nothing
  error_of_first = errno;
  return nullptr;
}

long long now_ms() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000LL + now.tv_nsec / 1'000'000;
}

int child() {
  const bool loaded = loading_core.done.load();
  CUcontext context = nullptr;
  CUdeviceptr block = 0;
  int codes = static_cast<int>(cuInit(0)) << 4;
  codes += cuCtxCreate_v2(&context, 0, 0) == CUDA_SUCCESS && cuMemAlloc_v2(&block, 512) == CUDA_SUCCESS ? 0 : 1;
  return codes + (loaded ? 0 : 2);
}

}  // namespace

int main() {
  int version = 0;
  if (cuDriverGetVersion(&version) != CUDA_SUCCESS) return 1;  // what the driver itself does once is done
  pthread_t thread;
  if (pthread_create(&thread, nullptr, first, nullptr) != 0) return 1;
  while (!loading_core.begun.load()) {
    sched_yield();
  }
  loading_core.forking.store(true);
  const long long before = now_ms();
  const pid_t process = fork();
  if (process == 0) _exit(child());
  const long long waited = now_ms() - before;
  int status = 0;
  waitpid(process, &status, 0);
  pthread_join(thread, nullptr);
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  printf("loaded=%d init=%d alloc=%d signal=%d errno=%d waited=%lld\n", (code & 2) == 0, code >> 4, code & 1,
         WIFSIGNALED(status) ? WTERMSIG(status) : 0, error_of_first, waited);
  return 0;
}
