// main_thread_ends HOW: the main thread ends by pthread_exit, in a process whose sleeping threads never wake by
// themselves: waits of a second and more have no limit here. Prints how many threads of Ration's there were.
// HOW: alone (the main thread made all calls) | worker (another one made them, which has ended) | before (another one
// made them, which sees Ration's threads end and then ends itself)
#include <cuda.h>
#include <dirent.h>
#include <dlfcn.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>

#include <atomic>
#include <cstring>
#include <string>
#include <thread>

// As in libc, which these replace for Ration.
extern "C" __attribute__((visibility("default"))) long syscall(long number, ...) noexcept {
  static const auto real = reinterpret_cast<long (*)(long, ...)>(dlsym(RTLD_NEXT, "syscall"));
  long given[6];
  va_list list;
  va_start(list, number);
  for (long &each : given) {
    each = va_arg(list, long);
  }
  va_end(list);
  const auto *most = reinterpret_cast<const timespec *>(given[3]);
  if (number == SYS_futex && (given[1] & FUTEX_CMD_MASK) == FUTEX_WAIT && most != nullptr && most->tv_sec > 0) {
    given[3] = 0;
  }
  return real(number, given[0], given[1], given[2], given[3], given[4], given[5]);
}

extern "C" __attribute__((visibility("default"))) int poll(pollfd *files, nfds_t count, int most_ms) {
  static const auto real = reinterpret_cast<int (*)(pollfd *, nfds_t, int)>(dlsym(RTLD_NEXT, "poll"));
  return real(files, count, most_ms >= 1000 ? -1 : most_ms);
}

namespace {

int own_threads() {
  int found = 0;
  DIR *tasks = opendir("/proc/self/task");
  while (const dirent *task = readdir(tasks)) {
    const std::string path = std::string("/proc/self/task/") + task->d_name + "/comm";
    char name[32] = {};
    if (FILE *file = fopen(path.c_str(), "re")) {
      found += fgets(name, sizeof(name), file) != nullptr && std::strncmp(name, "ration-", 7) == 0 ? 1 : 0;
      fclose(file);
    }
  }
  closedir(tasks);
  return found;
}

// So much that neighbours may want it, and a block that others may open.
void call() {
  CUcontext context = nullptr;
  CUdeviceptr block = 0;
  CUipcMemHandle handle{};
  if (cuInit(0) != CUDA_SUCCESS || cuCtxCreate(&context, nullptr, 0, 0) != CUDA_SUCCESS ||
      cuMemAlloc(&block, std::size_t{64} << 20) != CUDA_SUCCESS || cuIpcGetMemHandle(&handle, block) != CUDA_SUCCESS) {
    std::printf("refused\n");
  }
  std::printf("threads: %d\n", own_threads());
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char **argv) {
  const std::string how = argc == 2 ? argv[1] : "";
  if (how == "alone") {
    call();
  } else if (how == "worker") {
    std::thread(call).join();
  } else {
    std::atomic<bool> called{false};
    std::thread([&called, main_thread = pthread_self()] {
      call();
      called = true;
      pthread_join(main_thread, nullptr);
      while (own_threads() != 0) {
        std::this_thread::yield();
      }
      std::printf("afterwards: %d\n", own_threads());
    }).detach();
    while (!called) {
      std::this_thread::yield();
    }
  }
  pthread_exit(nullptr);
}
