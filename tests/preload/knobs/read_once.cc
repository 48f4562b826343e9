// read_once sharing | sealed | control: moves its environment to pages of its own, makes the first call, unmaps the
// pages and makes calls of every family; a second read of the environment would crash. sealed: after one round (the
// ledger is joined at the first allocation) opening a file is fatal too, so nothing is shared. control: opens one.
#include <cuda.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tests/preload/nvml/nvml_calls.h"

namespace {

constexpr std::size_t kBytes = std::size_t{1} << 20;
constexpr int kRounds = 50;

void must(CUresult code) {
  if (code == CUDA_SUCCESS) return;
  std::fprintf(stderr, "read_once: %d\n", static_cast<int>(code));
  _exit(1);
}

char *move_environment() {
  auto *const pages =
      static_cast<char *>(mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  std::size_t count = 0;
  while (environ[count] != nullptr) ++count;
  auto **const entries = reinterpret_cast<char **>(pages);
  char *text = pages + (count + 1) * sizeof(char *);
  for (std::size_t i = 0; i < count; ++i) {
    entries[i] = std::strcpy(text, environ[i]);
    text += std::strlen(text) + 1;
  }
  entries[count] = nullptr;
  environ = entries;
  return pages;
}

bool forbid_opening() {
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 2, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2, 1, 0),
#ifdef SYS_open
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_open, 0, 1),
#else
      BPF_STMT(BPF_JMP | BPF_JA, 1),
#endif
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog filter{sizeof(program) / sizeof(program[0]), program};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

void blocks(CUcontext context, bool sharing) {
  CUdeviceptr block = 0, ordered = 0, managed = 0, refused = 0;
  std::size_t free = 0, total = 0, pitch = 0;
  must(cuMemAlloc(&block, 1 << 20));
  must(cuMemAllocAsync(&ordered, 1 << 20, nullptr));
  must(cuMemAllocManaged(&managed, 1 << 20, CU_MEM_ATTACH_GLOBAL));
  must(cuMemGetInfo(&free, &total));
  if (cuMemAlloc(&refused, total) != CUDA_ERROR_OUT_OF_MEMORY) must(CUDA_ERROR_UNKNOWN);
  CUipcMemHandle handle{};
  if (sharing) (void)cuIpcGetMemHandle(&handle, block);
  std::size_t bytes = 0;
  must(cuMemGetAddressRange(&refused, &bytes, block));
  std::uint64_t number = 0;
  must(cuPointerGetAttribute(&number, CU_POINTER_ATTRIBUTE_BUFFER_ID, block));
  must(cuMemFree(block));
  must(cuMemFreeAsync(ordered, nullptr));
  must(cuMemFree(managed));
  must(cuMemAllocPitch(&block, &pitch, 1000, 100, 4));
  must(cuMemFree(block));
  CUcontext another = nullptr;
  must(cuCtxCreate(&another, nullptr, 0, 0));
  must(cuMemAlloc(&block, 48 << 20));
  must(cuCtxDestroy(another));
  must(cuCtxSetCurrent(context));
  must(cuCtxSynchronize());
}

void other_kinds() {
  CUarray array = nullptr;
  const CUDA_ARRAY_DESCRIPTOR shape{64, 64, CU_AD_FORMAT_FLOAT, 1};
  must(cuArrayCreate(&array, &shape));
  must(cuArrayDestroy(array));
  CUmemGenericAllocationHandle physical = 0;
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  must(cuMemCreate(&physical, 2 << 20, &properties, 0));
  must(cuMemRelease(physical));
  void *pinned = nullptr;
  must(cuMemHostAlloc(&pinned, 4096, 0));
  must(cuMemFreeHost(pinned));
  CUmemoryPool pool = nullptr;
  CUmemPoolProps shared{};
  shared.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  shared.location = properties.location;
  must(cuMemPoolCreate(&pool, &shared));
  CUdeviceptr ordered = 0;
  must(cuMemAllocFromPoolAsync(&ordered, 1 << 20, pool, nullptr));
  must(cuMemFreeAsync(ordered, nullptr));
  must(cuMemPoolTrimTo(pool, 0));
  must(cuMemPoolDestroy(pool));
}

void questions(const monitor::Nvml &nvml) {
  std::size_t total = 0;
  must(cuDeviceTotalMem(&total, 0));
  void *entry = dlsym(RTLD_DEFAULT, "cuMemAlloc_v2");
  if (entry == nullptr) must(CUDA_ERROR_NOT_FOUND);
  CUdriverProcAddressQueryResult found = CU_GET_PROC_ADDRESS_SUCCESS;
  must(cuGetProcAddress("cuMemFree", &entry, 12000, CU_GET_PROC_ADDRESS_DEFAULT, &found));
  CUstream stream = nullptr;
  must(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  must(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  CUgraph graph = nullptr;
  must(cuStreamEndCapture(stream, &graph));
  must(cuGraphDestroy(graph));
  must(cuStreamDestroy(stream));
  nvmlDevice_t device = nullptr;
  nvmlMemory_t memory{};
  if (nvml.by_index(0, &device) != NVML_SUCCESS || nvml.memory(device, &memory) != NVML_SUCCESS)
    must(CUDA_ERROR_UNKNOWN);
}

void use(CUcontext context, const monitor::Nvml &nvml, bool sharing) {
  blocks(context, sharing);
  other_kinds();
  questions(nvml);
}

}  // namespace

int main(int, char **argv) {
  const bool sharing = std::strcmp(argv[1], "sharing") == 0, control = std::strcmp(argv[1], "control") == 0;
  monitor::Nvml nvml{};
  if (!monitor::find_nvml(nvml) || nvml.init() != NVML_SUCCESS) return 3;
  char *const pages = move_environment();
  CUcontext context = nullptr;
  must(cuInit(0));
  must(cuCtxCreate(&context, nullptr, 0, 0));
  CUdeviceptr first = 0;
  must(cuMemAlloc(&first, 1 << 20));
  if (mprotect(pages, kBytes, PROT_NONE) != 0) return 2;
  use(context, nvml, sharing);
  if (!sharing && !forbid_opening()) return 4;
  if (control) (void)open("/dev/null", O_RDONLY | O_CLOEXEC);
  for (int i = 0; i < kRounds; ++i) use(context, nvml, sharing);
  constexpr char kDone[] = "done\n";
  // No exit handlers: they may read the environment.
  _exit(write(1, kDone, sizeof(kDone) - 1) < 0);
}
