// confining: executes lines of its standard input (kOps) and prints each one's code: of the driver, or what errno says.
// Gives up rights, descriptors and memory that it needs no more, as services do once they have started.
#include <cuda.h>
#include <dirent.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
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

// What a process calls that computes with what it has.
const std::vector<int> kComputing = {
    SYS_read, SYS_write, SYS_pread64, SYS_pwrite64, SYS_lseek, SYS_close, SYS_fstat, SYS_newfstatat, SYS_ioctl,
    SYS_mmap, SYS_munmap, SYS_mremap, SYS_madvise, SYS_mprotect, SYS_brk, SYS_futex, SYS_sched_yield, SYS_nanosleep,
    SYS_clock_gettime, SYS_clock_nanosleep, SYS_gettid, SYS_getpid, SYS_rt_sigaction, SYS_rt_sigprocmask,
    SYS_rt_sigreturn, SYS_exit, SYS_exit_group,
    // The driver may start a thread.
    SYS_clone, SYS_clone3, SYS_set_robust_list, SYS_rseq, SYS_sched_getaffinity, SYS_prlimit64};

// What opens, or changes, anything by its name.
const std::vector<int> kNaming = {
#ifdef SYS_open
    SYS_open,       SYS_creat,   SYS_stat,      SYS_lstat,      SYS_access,   SYS_unlink,  SYS_rename,
    SYS_mkdir,      SYS_chmod,   SYS_readlink,
#endif
    SYS_openat,     SYS_openat2, SYS_faccessat, SYS_faccessat2, SYS_unlinkat, SYS_mkdirat, SYS_fchmodat,
    SYS_readlinkat, SYS_socket,  SYS_connect,   SYS_execve,     SYS_execveat};  // newfstatat(2) is fstat, too

// For all threads, and for good. `calls` are answered in one way, all others in the other.
int filter(const std::vector<int> &calls, std::uint32_t listed, std::uint32_t others) {
  std::vector<sock_filter> program{BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr))};
  for (const int call : calls) {
    program.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::uint32_t>(call), 0, 1));
    program.push_back(BPF_STMT(BPF_RET | BPF_K, listed));
  }
  program.push_back(BPF_STMT(BPF_RET | BPF_K, others));
  const sock_fprog all{static_cast<unsigned short>(program.size()), program.data()};
  return failed(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
                syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &all) != 0);
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
    {"compute_only", [](auto &) { return filter(kComputing, SECCOMP_RET_ALLOW, SECCOMP_RET_KILL_PROCESS); }},
    {"open_nothing", [](auto &) { return filter(kNaming, SECCOMP_RET_ERRNO | EPERM, SECCOMP_RET_ALLOW); }},
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
