// loader_lock LIBRARY: two concurrent first uses, one of them under the loader's lock. The library's constructor starts
// the other thread and waits until that thread sleeps (on the loader's lock, or on what the first use waits for) or is
// done. Then it makes its own first call: a lock of Ration's that is held across a loader call deadlocks here.
#include <dlfcn.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <string>
#include <thread>

#include "fill.h"

namespace {

std::atomic<long> other_thread{0};
std::atomic<bool> other_done{false};
std::atomic<int> blocks{0};
std::thread other;

void use(CUresult *code) {
  CUcontext context = nullptr;
  *code = cuInit(0);
  *code = *code == CUDA_SUCCESS ? cuDevicePrimaryCtxRetain(&context, 0) : *code;
  *code = *code == CUDA_SUCCESS ? cuCtxSetCurrent(context) : *code;
  if (*code == CUDA_SUCCESS) {
    const preload::Taken taken = preload::take_all(&cuMemAlloc_v2);
    *code = taken.code;
    blocks += taken.blocks;
  }
}

// Field 3 of /proc/self/task/TID/stat, after the name in parentheses: S is a sleeping thread.
bool sleeps(long thread) {
  std::ifstream file("/proc/self/task/" + std::to_string(thread) + "/stat");
  std::string line;
  std::getline(file, line);
  const auto state = line.rfind(") ");
  return state != std::string::npos && line[state + 2] == 'S';
}

CUresult codes[2];

}  // namespace

extern "C" __attribute__((visibility("default"))) void while_loading() {
  other = std::thread([] {
    other_thread = syscall(SYS_gettid);
    use(&codes[1]);
    other_done = true;
  });
  while (!other_done && (other_thread == 0 || !sleeps(other_thread))) {
    std::this_thread::yield();
  }
  use(&codes[0]);
}

int main(int argc, char **argv) {
  if (argc != 2 || dlopen(argv[1], RTLD_NOW) == nullptr) {
    dprintf(2, "%s\n", dlerror());
    return 1;
  }
  other.join();
  if (codes[0] != codes[1]) {
    return 1;
  }
  preload::print({blocks, codes[0], true});
  return 0;
}
