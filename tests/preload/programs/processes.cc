// processes HOW: fills the device in the process that HOW names. The exit status is that process's.
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include "fill.h"

extern char **environ;

namespace {

const preload::Calls kCalls = {&cuInit, &cuDeviceGet, &cuCtxCreate_v2, &cuMemAlloc_v2};

char program[] = "/proc/self/exe";
char fill_argument[] = "fill";
char *fill_arguments[] = {program, fill_argument, nullptr};

int status_of(pid_t child) {
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child) {
    return 1;
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

int exec_fill() {
  execv(program, fill_arguments);
  return 127;
}

// A child of a process that uses CUDA has no working driver: the codes must be the driver's own.
int fork_after_use() {
  if (!preload::start(kCalls)) {
    return 1;
  }
  const preload::Taken taken = preload::take_all(kCalls.allocate);
  const pid_t child = fork();
  if (child == 0) {
    CUcontext current = nullptr;
    CUdeviceptr address = preload::kBefore;
    size_t free_bytes = 1;
    size_t total = 1;
    dprintf(1, "child: init %d", static_cast<int>(cuInit(0)));
    dprintf(1, ", current %d", static_cast<int>(cuCtxGetCurrent(&current)));
    dprintf(1, ", context %d", static_cast<int>(cuCtxCreate_v2(&current, 0, 0)));
    dprintf(1, ", free memory %d", static_cast<int>(cuMemGetInfo_v2(&free_bytes, &total)));
    dprintf(1, ", allocate %d", static_cast<int>(cuMemAlloc_v2(&address, 1 << 20)));
    dprintf(1, ", untouched %d", address == preload::kBefore ? 1 : 0);
    dprintf(1, ", free %d\n", static_cast<int>(cuMemFree_v2(address)));
    _exit(0);
  }
  const int status = status_of(child);
  preload::print(taken);
  return status;
}

}  // namespace

int main(int argc, char **argv) {
  const std::string how = argc == 2 ? argv[1] : "";
  if (how == "fill") {
    return preload::fill(kCalls);
  }
  if (how == "fork") {
    const pid_t child = fork();
    if (child == 0) {
      _exit(preload::fill(kCalls));
    }
    return status_of(child);
  }
  if (how == "fork_then_parent") {
    const pid_t child = fork();
    if (child == 0) {
      _exit(preload::fill(kCalls));
    }
    const int status = status_of(child);
    return status != 0 ? status : preload::fill(kCalls);
  }
  if (how == "fork_after_use") {
    return fork_after_use();
  }
  if (how == "exec") {
    return exec_fill();
  }
  if (how == "exec_after_use") {
    CUdeviceptr address = 0;
    return preload::start(kCalls) && cuMemAlloc_v2(&address, preload::kBlockBytes) == CUDA_SUCCESS ? exec_fill() : 1;
  }
  if (how == "vfork_exec") {
    const pid_t child = vfork();
    if (child == 0) {
      execv(program, fill_arguments);
      _exit(127);
    }
    return status_of(child);
  }
  if (how == "spawn") {
    pid_t child = -1;
    return posix_spawn(&child, program, nullptr, nullptr, fill_arguments, environ) == 0 ? status_of(child) : 1;
  }
  return 2;
}
