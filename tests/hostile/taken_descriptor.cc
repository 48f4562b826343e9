// taken_descriptor HOW: a descriptor that the program did not open is closed, and its number given away, between
// Ration's look at it and its write. HOW: once | always. Prints what is then in the program's own files.
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>

namespace {

constexpr int kMostFiles = 100;
int files[kMostFiles];
int count = 0;
int left = 0;         // descriptors that another thread would still take
bool inside = false;  // a call of ours
struct stat log_status;

bool is_log(int file, const struct stat &status) {
  return file > STDERR_FILENO && status.st_dev == log_status.st_dev && status.st_ino == log_status.st_ino;
}

}  // namespace

// What another thread does between this call and the next is done at its end.
extern "C" __attribute__((visibility("default"))) int fstat(int file, struct stat *status) noexcept {
  const int result = reinterpret_cast<int (*)(int, struct stat *)>(dlsym(RTLD_NEXT, "fstat"))(file, status);
  if (result == 0 && left > 0 && count < kMostFiles && !inside && is_log(file, *status)) {
    inside = true;
    --left;
    close(file);
    files[count++] = open(".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    inside = false;
  }
  return result;
}

int main(int, char **arguments) {
  CUcontext context = nullptr;
  CUdeviceptr block = 0;
  if (cuInit(0) != CUDA_SUCCESS || cuCtxCreate_v2(&context, 0, 0) != CUDA_SUCCESS ||
      cuMemAlloc_v2(&block, 1 << 20) != CUDA_SUCCESS || stat(getenv("RATION_LOG"), &log_status) != 0) {
    fprintf(stderr, "no driver, or no log\n");
    return 1;
  }
  left = strcmp(arguments[1], "once") == 0 ? 1 : kMostFiles;
  rlimit limit{};
  getrlimit(RLIMIT_CORE, &limit);
  for (int i = 0; i < 5; ++i) {
    setrlimit(RLIMIT_CORE, &limit);  // any change of a limit makes Ration look before its next write
    cuMemAlloc_v2(&block, 1 << 20);
  }
  left = 0;
  for (int i = 0; i < 5; ++i) {
    cuMemAlloc_v2(&block, 1 << 20);
  }
  off_t foreign = 0;
  for (int i = 0; i < count; ++i) {
    foreign += lseek(files[i], 0, SEEK_END);
  }
  printf("files=%d foreign=%ld\n", count, static_cast<long>(foreign));
  return 0;
}
