// probe [FOLDER]: changes to FOLDER, fills the device by looked-up calls, and prints whether Ration's core is mapped.
#include <dlfcn.h>
#include <unistd.h>

#include "checks.h"
#include "fill.h"

int main(int argc, char **argv) {
  if (argc == 2 && chdir(argv[1]) != 0) {
    return 1;
  }
  void *driver = dlopen("libcuda.so.1", RTLD_NOW);
  const auto find = [=](const char *name) { return dlsym(driver, name); };
  const preload::Calls calls = preload::calls_found_by(find);
  const auto release = reinterpret_cast<decltype(&::cuMemFree_v2)>(find("cuMemFree_v2"));
  const auto memory = reinterpret_cast<decltype(&::cuMemGetInfo_v2)>(find("cuMemGetInfo_v2"));
  const auto resolve = reinterpret_cast<decltype(&::cuGetProcAddress_v2)>(find("cuGetProcAddress_v2"));
  if (!preload::start(calls)) {
    return 1;
  }
  size_t free_bytes = 0;
  size_t total = 0;
  CUdeviceptr one = 0;
  CUdeviceptr two = 0;
  void *resolved = nullptr;
  const CUresult first = calls.allocate(&one, preload::kBlockBytes);
  const CUresult freed = first == CUDA_SUCCESS ? release(one) : CUDA_SUCCESS;
  const CUresult reported = memory(&free_bytes, &total);
  const CUresult found = resolve("cuMemAlloc", &resolved, 3020, 0, nullptr);
  dprintf(1, "freed=%d reported=%d total=%zu found=%d\n", static_cast<int>(freed), static_cast<int>(reported), total,
          static_cast<int>(found));
  const CUresult by_pointer = reinterpret_cast<decltype(&::cuMemAlloc_v2)>(resolved)(&two, preload::kBlockBytes);
  if (by_pointer == CUDA_SUCCESS) {
    release(two);
  }
  dprintf(1, "by_pointer=%d\n", static_cast<int>(by_pointer));
  preload::print(preload::take_all(calls.allocate));
  dprintf(1, "core=%d\n", preload::is_mapped("libration-core.so") ? 1 : 0);
  return 0;
}
