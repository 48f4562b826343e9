// bare_children WAY: shares a block, and has a child that no handler of fork(2) is called for, and that exits as
// programs do. WAY: fork (the control) | _Fork | clone | namespace (the child has its parent's process ID, 1, where the
// kernel lets it) | shared (a child in the same memory). Says so, waits for its standard input to end, and exits.
#include <dlfcn.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>

namespace {

alignas(16) char child_stack[256 << 10];
CUdeviceptr late = 0;

// What a child does that knows nothing of Ration, nor of its parent's CUDA.
int in_child(void *) {
  cuMemFree_v2(late);
  exit(0);
}

pid_t raw_clone(unsigned long flags) {
  return static_cast<pid_t>(syscall(SYS_clone, flags | SIGCHLD, nullptr, nullptr, nullptr, nullptr));
}

pid_t child_by(const std::string &way) {
  if (way == "fork") {
    return fork();
  }
  if (way == "_Fork") {
    const auto call = reinterpret_cast<pid_t (*)()>(dlsym(RTLD_DEFAULT, "_Fork"));  // glibc 2.34
    return call != nullptr ? call() : raw_clone(0);
  }
  if (way == "namespace") {
    const pid_t child = raw_clone(CLONE_NEWPID);
    return child >= 0 ? child : raw_clone(0);
  }
  if (way == "shared") {
    return clone(
        [](void *) {
          exit(0);
          return 0;
        },
        child_stack + sizeof(child_stack), CLONE_VM | CLONE_VFORK | SIGCHLD, nullptr);
  }
  return raw_clone(0);
}

}  // namespace

int main(int, char **arguments) {
  CUcontext context = nullptr;
  CUdeviceptr block = 0;
  CUipcMemHandle handle;
  if (cuInit(0) != CUDA_SUCCESS || cuCtxCreate_v2(&context, 0, 0) != CUDA_SUCCESS ||
      cuMemAlloc_v2(&block, 4 << 20) != CUDA_SUCCESS || cuMemAlloc_v2(&late, 1 << 20) != CUDA_SUCCESS ||
      cuIpcGetMemHandle(&handle, block) != CUDA_SUCCESS) {
    fprintf(stderr, "no driver\n");
    return 1;
  }
  const pid_t child = child_by(arguments[1]);
  if (child == 0) {
    in_child(nullptr);
  }
  int status = -1;
  waitpid(child, &status, 0);
  dprintf(1, "child: %d\n", status);
  char byte = 0;
  while (read(0, &byte, 1) == 1) {
  }
  return 0;
}
