// Two threads on one processor. While the first is in the first call, in which Ration starts, a thread of real-time
// priority arrives at a call of its own: it must sleep, because the first cannot run before. The kernel ends a process
// in which such a thread computes for too long without sleeping (RLIMIT_RTTIME). Prints the codes of both threads'
// calls, or `refused` where real-time priority is not to be had.
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>

namespace {

constexpr rlim_t kMostMicroseconds = 500'000;
sem_t started;
bool arrived = false;
CUresult second_code = CUDA_ERROR_UNKNOWN;

void *second(void *) {
  while (sem_wait(&started) != 0) {
  }
  arrived = true;
  int count = 0;
  second_code = cuDeviceGetCount(&count);
  size_t bytes = 0;
  const CUresult code = cuDeviceTotalMem_v2(&bytes, 0);
  second_code = second_code == CUDA_SUCCESS ? code : second_code;
  return nullptr;
}

bool start_second(pthread_t &thread) {
  pthread_attr_t attributes;
  const sched_param priority{1};
  pthread_attr_init(&attributes);
  return pthread_attr_setinheritsched(&attributes, PTHREAD_EXPLICIT_SCHED) == 0 &&
         pthread_attr_setschedpolicy(&attributes, SCHED_FIFO) == 0 &&
         pthread_attr_setschedparam(&attributes, &priority) == 0 &&
         pthread_create(&thread, &attributes, second, nullptr) == 0;
}

}  // namespace

// Ration asks for it while it starts, for the name of the log.
extern "C" __attribute__((visibility("default"))) int gethostname(char *name, size_t bytes) noexcept {
  sem_post(&started);
  return reinterpret_cast<int (*)(char *, size_t)>(dlsym(RTLD_NEXT, "gethostname"))(name, bytes);
}

int main() {
  sem_init(&started, 0, 0);
  cpu_set_t allowed;
  cpu_set_t one;
  sched_getaffinity(0, sizeof(allowed), &allowed);
  CPU_ZERO(&one);
  for (int processor = 0; processor < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++processor) {
    if (CPU_ISSET(processor, &allowed)) {
      CPU_SET(processor, &one);
    }
  }
  const rlimit most{kMostMicroseconds, kMostMicroseconds};
  pthread_t thread;
  if (sched_setaffinity(0, sizeof(one), &one) != 0 || setrlimit(RLIMIT_RTTIME, &most) != 0 || !start_second(thread)) {
    printf("refused\n");
    return 0;
  }
  size_t bytes = 0;
  cuInit(0);
  const CUresult first_code = cuDeviceTotalMem_v2(&bytes, 0);
  printf("arrived=%d ", arrived ? 1 : 0);
  sem_post(&started);
  pthread_join(thread, nullptr);
  printf("first=%d second=%d\n", static_cast<int>(first_code), static_cast<int>(second_code));
  return 0;
}
