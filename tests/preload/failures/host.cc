// host HOW: prints process state other than the GPU's, before, during and after the use of CUDA: umask, signal actions
// and mask, folder, threads, rlimits and the effect of a signal. `use` prints it once. `generations N`: each process
// uses CUDA, prints its descriptors, Ration's mappings and the fork handlers registered since its start, and forks the
// next. `exit` calls exit(7) while one thread allocates and another one holds the locks of stdout and stderr.
// `signalled MICROSECONDS` calls exit(7) from a signal handler that interrupts its own calls after that time.
#include <dirent.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <string>
#include <thread>

#include "fork_handlers.h"
#include "tests/preload/programs/fill.h"

namespace {

volatile sig_atomic_t answered = 0;

// Allocates up to a refusal and frees; other tests check the result codes.
void use_cuda() {
  CUcontext context = nullptr;
  cuInit(0);
  cuCtxCreate_v2(&context, 0, 0);
  for (int round = 0; round < 20; ++round) {
    CUdeviceptr block = 0;
    CUdeviceptr never = 0;
    size_t free_bytes = 0;
    if (cuMemAlloc_v2(&block, size_t{1} << 20) == CUDA_SUCCESS) {
      cuMemFree_v2(block);
    }
    cuMemAlloc_v2(&never, size_t{8} << 30);
    cuMemGetInfo_v2(&free_bytes, nullptr);
  }
}

int entries_of(const char *folder) {
  int count = 0;
  DIR *entries = opendir(folder);
  while (entries != nullptr && readdir(entries) != nullptr) {
    ++count;
  }
  if (entries != nullptr) {
    closedir(entries);
  }
  return count;
}

// Those of Ration have its name.
int threads_of_program() {
  int count = 0;
  DIR *threads = opendir("/proc/self/task");
  while (const dirent *thread = threads != nullptr ? readdir(threads) : nullptr) {
    char name[16] = {};
    std::ifstream(std::string("/proc/self/task/") + thread->d_name + "/comm").read(name, sizeof(name) - 1);
    count += thread->d_name[0] != '.' && strncmp(name, "ration-", 7) != 0 ? 1 : 0;
  }
  if (threads != nullptr) {
    closedir(threads);
  }
  return count;
}

void tell_state() {
  const mode_t mask = umask(0);
  umask(mask);
  char folder[4096] = {};
  sigset_t blocked;
  sigemptyset(&blocked);
  sigprocmask(SIG_SETMASK, nullptr, &blocked);
  dprintf(1, "umask %03o in %s, %d threads\n", mask, getcwd(folder, sizeof(folder)), threads_of_program());
  for (int signal = 1; signal < 65; ++signal) {
    struct sigaction action {};
    if (sigaction(signal, nullptr, &action) == 0) {
      const char *does = action.sa_handler == SIG_DFL   ? "default"
                         : action.sa_handler == SIG_IGN ? "ignored"
                                                        : "handled";
      dprintf(1, "signal %d %s %d\n", signal, does, sigismember(&blocked, signal));
    }
  }
}

int use() {
  umask(027);
  struct sigaction action {};
  action.sa_handler = [](int) { answered = answered + 1; };
  sigaction(SIGUSR1, &action, nullptr);
  sigaction(SIGUSR2, &action, nullptr);
  sigaction(SIGSEGV, &action, nullptr);
  signal(SIGPIPE, SIG_IGN);
  sigset_t blocked;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGTERM);
  sigprocmask(SIG_BLOCK, &blocked, nullptr);
  tell_state();
  use_cuda();
  raise(SIGUSR1);
  raise(SIGUSR2);
  tell_state();
  dprintf(1, "answered %d\n", static_cast<int>(answered));
  return 0;
}

int generations(int left) {
  const int inherited = fork_handlers();
  use_cuda();
  int mapped = 0;
  FILE *maps = fopen("/proc/self/maps", "re");
  char line[4352];
  while (maps != nullptr && fgets(line, sizeof(line), maps) != nullptr) {
    mapped += strstr(line, "ration") != nullptr ? 1 : 0;
  }
  if (maps != nullptr) {
    fclose(maps);
  }
  dprintf(1, "descriptors %d mappings %d handlers %d\n", entries_of("/proc/self/fd") - 3, mapped,
          fork_handlers() - inherited);
  if (left == 0) {
    return 0;
  }
  const pid_t child = fork();
  if (child == 0) {
    _exit(generations(left - 1));
  }
  int status = 0;
  return waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

int exit_amid() {
  use_cuda();
  CUcontext context = nullptr;
  cuCtxGetCurrent(&context);
  std::atomic<int> busy{0};
  std::thread([&] {
    flockfile(stdout);
    flockfile(stderr);
    ++busy;
    for (;;) {
      pause();
    }
  }).detach();
  std::thread([&] {
    cuCtxSetCurrent(context);
    for (;; ++busy) {
      use_cuda();
    }
  }).detach();
  atexit([] { use_cuda(); });
  while (busy < 4) {
    std::this_thread::yield();
  }
  exit(7);
}

// A handler as many programs have it for SIGTERM. It may interrupt any place, also one that holds a lock.
int exit_in_handler(int microseconds) {
  signal(SIGALRM, [](int) { exit(7); });
  use_cuda();
  const itimerval once{{0, 0}, {0, microseconds}};
  setitimer(ITIMER_REAL, &once, nullptr);
  for (;;) {
    CUdeviceptr block = 0;
    if (cuMemAlloc_v2(&block, size_t{1} << 20) == CUDA_SUCCESS) {
      cuMemFree_v2(block);
    }
  }
}

}  // namespace

int main(int argc, char **argv) {
  const std::string how = argc > 1 ? argv[1] : "";
  if (how == "use") {
    return use();
  }
  if (how == "generations" && argc == 3) {
    return generations(atoi(argv[2]));
  }
  if (how == "signalled" && argc == 3) {
    return exit_in_handler(atoi(argv[2]));
  }
  if (how == "cleared") {
    clearenv();
    return preload::fill({&cuInit, &cuDeviceGet, &cuCtxCreate_v2, &cuMemAlloc_v2});
  }
  return how == "exit" ? exit_amid() : 2;
}
