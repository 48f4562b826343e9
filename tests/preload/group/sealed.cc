// sealed FILE hits|grows: warms a pool up, then makes the mappings of the group's FILE inaccessible. hits: 100,000
// pairs that the pool serves must succeed, and have not met the file: accessible again, it serves an allocation that
// the pool cannot. grows: such an allocation is refused meanwhile, which proves that the file is inaccessible, and
// afterwards.
#include <simcuda/simcuda.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "tests/preload/pool/verdict.h"

namespace {

using namespace preload::pool;

// So few that the live bytes never change enough to be published.
constexpr int kSlots = 8, kWarming = 5000, kPairs = 100'000;
constexpr size_t kMost = size_t{1} << 20, kBeyond = size_t{511} << 20;  // beside the preallocated 512 MiB, within 1 GiB

CUdeviceptr slots[kSlots];

void replace(unsigned step, Verdict &verdict) {
  CUdeviceptr &slot = slots[step % kSlots];
  if (slot != 0) verdict.succeeded("cuMemFree", cuMemFree_v2(slot));
  const size_t bytes = (size_t{step} * 2654435761U) % kMost + 1;
  verdict.succeeded("cuMemAlloc", cuMemAlloc_v2(&slot, bytes));
}

// Protects every mapping of the file and returns their number.
int protect(const char *file, int protection) {
  FILE *maps = fopen("/proc/self/maps", "re");
  char line[4352];
  int found = 0;
  while (maps != nullptr && fgets(line, sizeof(line), maps) != nullptr) {
    unsigned long from = 0;
    unsigned long to = 0;
    line[strcspn(line, "\n")] = '\0';
    const size_t length = strlen(line);
    if (length > strlen(file) && strcmp(line + length - strlen(file), file) == 0 &&
        sscanf(line, "%lx-%lx", &from, &to) == 2) {
      found += mprotect(reinterpret_cast<void *>(from), to - from, protection) == 0 ? 1 : 0;
    }
  }
  if (maps != nullptr) fclose(maps);
  return found;
}

}  // namespace

int main(int argc, char **argv) {
  if (argc != 3) return kOtherFailure;
  const rlimit no_core{0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  Verdict verdict;
  CUcontext context = nullptr;
  if (!verdict.succeeded("cuInit", cuInit(0)) || !verdict.succeeded("cuCtxCreate", cuCtxCreate_v2(&context, 0, 0))) {
    return verdict.status();
  }
  for (unsigned i = 0; i < kWarming && !verdict.failed(); ++i) replace(i, verdict);
  const unsigned long long taken = simcuda_calls("cuMemAlloc_v2");
  if (protect(argv[1], PROT_NONE) == 0) return kNothingTested;
  CUdeviceptr block = 0;
  if (strcmp(argv[2], "grows") == 0) {
    if (cuMemAlloc_v2(&block, kBeyond) != CUDA_ERROR_OUT_OF_MEMORY) verdict.fail(kNothingTested);
    protect(argv[1], PROT_READ | PROT_WRITE);
    if (cuMemAlloc_v2(&block, kBeyond) != CUDA_ERROR_OUT_OF_MEMORY) verdict.fail(kNothingTested);
    return verdict.status();
  }
  for (unsigned i = 0; i < kPairs && !verdict.failed(); ++i) replace(kWarming + i, verdict);
  if (simcuda_calls("cuMemAlloc_v2") != taken) verdict.fail(kNothingTested);
  protect(argv[1], PROT_READ | PROT_WRITE);
  verdict.succeeded("cuMemAlloc, by the driver", cuMemAlloc_v2(&block, kBeyond));
  dprintf(1, "%d hits\n", kPairs);
  return verdict.status();
}
