// hit EXPORTS | hit strict | hit strict-control: warmed-up pairs of cuMemAlloc and cuMemFree. EXPORTS: which driver
// functions were called meanwhile. strict: under a filter that ends the process at any system call but write(2) and the
// exit; strict-control makes one.
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "call_counts.h"
#include "verdict.h"

namespace {

using namespace preload::pool;

// The quarantine collects every 1,024 frees: warm is when it has several times, and the next time is not due.
constexpr int kPairs = 500, kWarming = 4 * 1024 + 100;

bool take_and_give_back(int pairs, Verdict &verdict) {
  for (int i = 0; i < pairs && !verdict.failed(); ++i) {
    CUdeviceptr block = 0;
    const size_t bytes = size_t{512} << (i % 12);
    if (cuMemAlloc_v2(&block, bytes) != CUDA_SUCCESS || cuMemFree_v2(block) != CUDA_SUCCESS)
      verdict.fail(kOtherFailure);
  }
  return !verdict.failed();
}

bool forbid_system_calls() {
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_write, 2, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 1, 0),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog filter{sizeof(program) / sizeof(program[0]), program};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

int strict(bool control, Verdict &verdict) {
  if (!forbid_system_calls()) return kNothingTested;
  if (control) getppid();
  const char *said = take_and_give_back(kPairs, verdict) ? "no system call\n" : "a call failed\n";
  if (write(1, said, strlen(said)) < 0) verdict.fail(kOtherFailure);
  _exit(verdict.status());
}

}  // namespace

int main(int argc, char **argv) {
  if (argc != 2) return kOtherFailure;
  Verdict verdict;
  CUcontext context = nullptr;
  if (!verdict.succeeded("cuInit", cuInit(0)) ||
      !verdict.succeeded("cuDevicePrimaryCtxRetain", cuDevicePrimaryCtxRetain(&context, 0)) ||
      !verdict.succeeded("cuCtxSetCurrent", cuCtxSetCurrent(context)) || !take_and_give_back(kWarming, verdict)) {
    return verdict.status();
  }
  if (strncmp(argv[1], "strict", 6) == 0) return strict(strcmp(argv[1], "strict-control") == 0, verdict);
  CallCounts counts(argv[1]);
  take_and_give_back(kPairs, verdict);
  counts.print();
  return verdict.status();
}
