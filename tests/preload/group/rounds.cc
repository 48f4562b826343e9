// rounds PROCESSES ROUNDS BYTES FIT LIMIT [fresh]: in each round all processes allocate BYTES at the same time. Exactly
// FIT of them must succeed, the others must get code 2, and the device must not hold more than LIMIT for all of them.
// fresh: each round uses new contexts, so that no pool of the previous round is left. Exit status 0: every round held.
#include <pthread.h>
#include <signal.h>
#include <simcuda/simcuda.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <vector>

#include "tests/preload/programs/fill.h"

namespace {

struct Shared {
  pthread_barrier_t barrier;
  std::atomic<int> got;
  std::atomic<unsigned long long> held;
  std::atomic<unsigned long long> least_held;  // of all rounds
};

struct Task {
  int processes;
  int rounds;
  size_t bytes;
  int fit;
  size_t limit;
  bool fresh;
};

bool is_success(const char *what, CUresult code) {
  if (code != CUDA_SUCCESS) {
    dprintf(1, "%s: %d\n", what, static_cast<int>(code));
  }
  return code == CUDA_SUCCESS;
}

bool judge(const Task &task, int round, Shared &shared) {
  shared.least_held = round == 0 || shared.held < shared.least_held ? shared.held.load() : shared.least_held.load();
  const bool right = shared.got == task.fit && shared.held <= task.limit;
  if (!right) {
    dprintf(1, "round %d: %d got it, not %d; the device holds %llu\n", round, shared.got.load(), task.fit,
            shared.held.load());
  }
  return right;
}

// False where a call failed in an unexpected way.
bool take_part(const Task &task, Shared &shared, CUdeviceptr &block) {
  block = preload::kBefore;
  const CUresult code = cuMemAlloc_v2(&block, task.bytes);
  const bool got = code == CUDA_SUCCESS;
  shared.got += got ? 1 : 0;
  if (!got && (code != CUDA_ERROR_OUT_OF_MEMORY || block != 0)) {
    dprintf(1, "an unexpected code: %d\n", static_cast<int>(code));
    return false;
  }
  block = got ? block : 0;
  simcuda_books books{};
  simcuda_device_books(0, &books);
  shared.held += books.allocation_bytes + books.physical_bytes;
  return true;
}

bool work(const Task &task, Shared &shared, bool judging) {
  CUcontext context = nullptr;
  bool right = is_success("cuInit", cuInit(0)) && is_success("cuCtxCreate", cuCtxCreate_v2(&context, 0, 0));
  for (int round = 0; right && round < task.rounds; ++round) {
    pthread_barrier_wait(&shared.barrier);
    CUdeviceptr block = 0;
    right = take_part(task, shared, block);
    pthread_barrier_wait(&shared.barrier);
    if (judging) {
      right = right && judge(task, round, shared);
      shared.got = 0;
      shared.held = 0;
    }
    if (block != 0 && !task.fresh) {
      right = right && is_success("cuMemFree", cuMemFree_v2(block));
    }
    if (task.fresh) {
      right = right && is_success("cuCtxDestroy", cuCtxDestroy_v2(context)) &&
              is_success("cuCtxCreate", cuCtxCreate_v2(&context, 0, 0));
    }
    pthread_barrier_wait(&shared.barrier);
  }
  return right;
}

// A process that ends early would block the others at the barrier, so they are killed.
int wait_for_all(std::vector<pid_t> &workers) {
  int failed = 0;
  for (size_t ended = 0; ended < workers.size(); ++ended) {
    int status = 0;
    if (wait(&status) < 0 || !WIFEXITED(status) || WEXITSTATUS(status) != 0) {
      ++failed;
      for (const pid_t worker : workers) {
        kill(worker, SIGKILL);
      }
    }
  }
  return failed;
}

}  // namespace

int main(int argc, char **argv) {
  if (argc < 6) {
    return 2;
  }
  const Task task{
      atoi(argv[1]), atoi(argv[2]), strtoull(argv[3], nullptr, 10), atoi(argv[4]), strtoull(argv[5], nullptr, 10),
      argc > 6};
  void *const page = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) {
    return 2;
  }
  Shared &shared = *new (page) Shared{};
  pthread_barrierattr_t attributes{};
  pthread_barrierattr_init(&attributes);
  pthread_barrierattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  pthread_barrier_init(&shared.barrier, &attributes, static_cast<unsigned>(task.processes));
  std::vector<pid_t> workers;
  for (int i = 0; i < task.processes; ++i) {
    const pid_t worker = fork();
    if (worker == 0) {
      _exit(work(task, shared, i == 0) ? 0 : 1);
    }
    workers.push_back(worker);
  }
  const int failed = wait_for_all(workers);
  dprintf(1, "%d of %d processes completed %d rounds, holding %llu at least\n", task.processes - failed, task.processes,
          task.rounds, shared.least_held.load());
  return failed == 0 ? 0 : 1;
}
