#include "processes.h"

#include <dirent.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <stdexcept>

namespace multiproc {
namespace {

constexpr std::uint64_t kPatienceNs = 60'000'000'000;

long futex(Gate &gate, int operation, std::uint32_t value, const timespec *timeout) {
  return syscall(SYS_futex, reinterpret_cast<std::uint32_t *>(&gate), operation, value, timeout, nullptr, 0);
}

int code_of(int status) {
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace

void *shared_bytes(std::size_t bytes) {
  void *const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    throw std::runtime_error("no shared memory");
  }
  return memory;
}

void give_back(void *memory, std::size_t bytes) {
  munmap(memory, bytes);
}

bool wait_while(Gate &gate, std::uint32_t value, std::uint64_t patience_ns) {
  const std::uint64_t deadline = now_ns() + patience_ns;
  while (gate.load() == value) {
    const std::uint64_t now = now_ns();
    if (now >= deadline) {
      return false;
    }
    const std::uint64_t left = deadline - now;
    const timespec timeout{static_cast<time_t>(left / 1'000'000'000), static_cast<long>(left % 1'000'000'000)};
    futex(gate, FUTEX_WAIT, value, &timeout);
  }
  return true;
}

void wait_while(Gate &gate, std::uint32_t value) {
  if (!wait_while(gate, value, kPatienceNs)) {
    fail("waited a minute for another process");
  }
}

void wake(Gate &gate) {
  futex(gate, FUTEX_WAKE, INT_MAX, nullptr);
}

void open(Gate &gate, std::uint32_t value) {
  gate.store(value);
  wake(gate);
}

void Barrier::meet() {
  const std::uint32_t now = round.load();
  if (arrived.fetch_add(1) + 1 == count) {
    arrived.store(0);
    open(round, now + 1);
  } else {
    wait_while(round, now);
  }
}

void fail(const std::string &what) {
  std::fprintf(stderr, "process %d: %s\n", getpid(), what.c_str());
  _exit(99);
}

Child::Child(const std::function<void()> &work) {
  std::fflush(nullptr);
  process_ = fork();
  if (process_ < 0) {
    throw std::runtime_error("no process");
  }
  if (process_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    try {
      work();
    } catch (const std::exception &error) {
      fail(error.what());
    }
    std::fflush(nullptr);
    _exit(0);
  }
}

Child::~Child() {
  if (process_ > 0) {
    kill();
  }
}

void Child::send(int signal) const {
  ::kill(process_, signal);
}

int Child::ended() {
  int status = 0;
  while (waitpid(process_, &status, 0) < 0 && errno == EINTR) {
  }
  process_ = -1;
  return code_of(status);
}

bool Child::stopped(int &status) {
  int found = 0;
  while (waitpid(process_, &found, WUNTRACED) < 0 && errno == EINTR) {
  }
  if (WIFSTOPPED(found)) {
    return true;
  }
  process_ = -1;
  status = code_of(found);
  return false;
}

void Child::kill() {
  send(SIGKILL);
  (void)ended();
}

Folder::Folder()
    : ScratchFolder(access("/dev/shm", R_OK | W_OK | X_OK) == 0 ? "/dev/shm" : std::filesystem::temp_directory_path()) {
}

std::vector<std::string> names_in(const std::string &folder) {
  std::vector<std::string> names;
  const std::unique_ptr<DIR, int (*)(DIR *)> stream(opendir(folder.c_str()), &closedir);
  while (const dirent *entry = stream == nullptr ? nullptr : readdir(stream.get())) {
    const std::string name = entry->d_name;
    if (name != "." && name != "..") {
      names.push_back(name);
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

bool is_long() {
  return std::getenv("MULTIPROC_LONG") != nullptr;
}

std::uint64_t seed_of(const char *test) {
  std::uint64_t seed = 0;
  if (const char *given = std::getenv("MULTIPROC_SEED")) {
    seed = std::strtoull(given, nullptr, 0);
  } else if (getrandom(&seed, sizeof(seed), 0) != sizeof(seed)) {
    seed = now_ns();
  }
  std::printf("%s: MULTIPROC_SEED=%llu\n", test, static_cast<unsigned long long>(seed));
  return seed;
}

std::uint64_t now_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(now.tv_nsec);
}

}  // namespace multiproc
