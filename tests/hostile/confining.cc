// confining: executes lines of its standard input (kOps) and prints each one's code: of the driver, or what errno says.
// Gives up rights, descriptors and memory that it needs no more, as services do once they have started.
#include <cuda.h>
#include <dirent.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <map>
#include <string>
#include <vector>

namespace {

using Op = std::function<int(const std::string &)>;

constexpr int kOther = 65534;

std::vector<CUdeviceptr> blocks;

int failed(bool failure) {
  return failure ? errno : 0;
}

int start(const std::string &) {
  CUcontext context = nullptr;
  const CUresult code = cuInit(0);
  return code != CUDA_SUCCESS ? code : cuCtxCreate_v2(&context, 0, 0);
}

int allocate(const std::string &bytes) {
  CUdeviceptr address = 0;
  const CUresult code = cuMemAlloc_v2(&address, strtoull(bytes.c_str(), nullptr, 10));
  if (code == CUDA_SUCCESS) blocks.push_back(address);
  return code;
}

int free_last(const std::string &) {
  const CUdeviceptr last = blocks.back();
  blocks.pop_back();
  return cuMemFree_v2(last);
}

// Daemons do so where a loop over all numbers would take too long.
int close_all(const std::string &) {
  DIR *const opened = opendir("/proc/self/fd");
  std::vector<int> numbers;
  while (const dirent *entry = readdir(opened)) numbers.push_back(atoi(entry->d_name));
  closedir(opened);
  for (const int number : numbers) {
    if (number > STDERR_FILENO) close(number);
  }
  return 0;
}

int lock_memory(const std::string &most) {
  const rlim_t bytes = strtoull(most.c_str(), nullptr, 10);
  const struct rlimit limit { bytes, bytes };
  return failed(setrlimit(RLIMIT_MEMLOCK, &limit) != 0 || mlockall(MCL_FUTURE) != 0);
}

const std::map<std::string, Op> kOps = {
    {"start", start},
    {"alloc", allocate},
    {"free", free_last},
    {"other_user", [](auto &) { return failed(setgid(kOther) != 0 || setuid(kOther) != 0); }},
    {"other_effective_user", [](auto &) { return failed(seteuid(kOther) != 0); }},
    {"root", [](auto &folder) { return failed(chroot(folder.c_str()) != 0 || chdir("/") != 0); }},
    {"close_all", close_all},
    {"lock_memory", lock_memory},
};

}  // namespace

int main() {
  for (std::string line; std::getline(std::cin, line);) {
    const size_t equals = line.find('=');
    const int code = kOps.at(line.substr(0, equals))(equals == std::string::npos ? "" : line.substr(equals + 1));
    printf("%s: %d\n", line.c_str(), code);
    fflush(stdout);
  }
  return 0;
}
