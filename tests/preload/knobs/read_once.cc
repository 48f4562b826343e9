// Moves its environment to pages of its own, makes the first call, then takes the pages away and goes on allocating,
// freeing, asking, making contexts and pools, sharing: whoever looked at the environment again would not live.
#include <cuda.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

constexpr std::size_t kBytes = std::size_t{1} << 20;

void must(CUresult code) {
  if (code == CUDA_SUCCESS) return;
  std::fprintf(stderr, "read_once: %d\n", static_cast<int>(code));
  std::exit(1);
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

void use(CUcontext &context) {
  CUdeviceptr block = 0, ordered = 0, managed = 0;
  std::size_t free = 0, total = 0, pitch = 0;
  must(cuMemAlloc(&block, 1 << 20));
  must(cuMemAllocAsync(&ordered, 1 << 20, nullptr));
  must(cuMemAllocManaged(&managed, 1 << 20, CU_MEM_ATTACH_GLOBAL));
  must(cuMemGetInfo(&free, &total));
  CUdeviceptr refused = 0;
  if (cuMemAlloc(&refused, total) != CUDA_ERROR_OUT_OF_MEMORY) must(CUDA_ERROR_UNKNOWN);
  CUipcMemHandle handle{};
  (void)cuIpcGetMemHandle(&handle, block);
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

}  // namespace

int main() {
  char *const pages = move_environment();
  CUcontext context = nullptr;
  must(cuInit(0));
  must(cuCtxCreate(&context, nullptr, 0, 0));
  CUdeviceptr first = 0;
  must(cuMemAlloc(&first, 1 << 20));
  if (mprotect(pages, kBytes, PROT_NONE) != 0) return 2;
  for (int i = 0; i < 50; ++i) use(context);
  std::puts("done");
  std::fflush(stdout);
  mprotect(pages, kBytes, PROT_READ | PROT_WRITE);  // what runs at exit is not a call of the program's
  return 0;
}
