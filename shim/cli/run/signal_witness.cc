#include "cli/run/signal_witness.h"

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <ctime>
#include <fstream>
#include <new>
#include <sstream>
#include <string>

#include "base/clock.h"

namespace ration::cli {

namespace {

constexpr char kName[] = "run-witness";  // so that pkill(1) finds only `ration`

// The witness must keep no pipe of the command open. Without close_range(2) it ends, and nothing is witnessed.
bool close_all() {
#ifdef SYS_close_range
  return syscall(SYS_close_range, 0U, ~0U, 0U) == 0;
#else
  return false;
#endif
}

// Clears what pkill -f would find. Fields 48 and 49 of proc_pid_stat(5) tell where the arguments are in memory.
void clear_arguments() {
  std::ifstream file("/proc/self/stat");
  std::string line;
  std::getline(file, line);
  std::istringstream rest(line.substr(std::min(line.size(), line.rfind(')') + 1)));
  std::string skipped;
  for (int field = 3; field < 48; ++field) {
    rest >> skipped;
  }
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;
  if (rest >> begin >> end && begin < end) {
    std::memset(reinterpret_cast<void *>(begin), 0, end - begin);  // NOLINT(performance-no-int-to-ptr)
  }
}

// A question is sent as the signal with the highest number, so that it is taken after all others that have arrived.
[[noreturn]] void witness(SignalWitness::Seen &seen, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  prctl(PR_SET_NAME, kName);
  clear_arguments();
  if (getppid() != parent || !close_all()) {
    _exit(0);
  }
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_BLOCK, &all, nullptr);
  for (;;) {
    siginfo_t signal{};
    const int number = sigwaitinfo(&all, &signal);
    if (number == SIGRTMAX && signal.si_code == SI_QUEUE && signal.si_pid == parent) {
      seen.answered.store(signal.si_value.sival_int, std::memory_order_release);
    } else if (number > 0 && number < NSIG) {
      seen.last_ns[static_cast<std::size_t>(number)].store(now_ns(), std::memory_order_relaxed);
    }
  }
}

void pause_for(std::int64_t nanoseconds) {
  const timespec span{0, nanoseconds};
  nanosleep(&span, nullptr);
}

}  // namespace

SignalWitness::SignalWitness() {
  void *const memory = mmap(nullptr, sizeof(Seen), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    return;
  }
  seen_ = new (memory) Seen;
  const pid_t parent = getpid();
  process_ = fork();
  if (process_ == 0) {
    witness(*seen_, parent);
  }
}

SignalWitness::~SignalWitness() {
  if (process_ > 0) {
    kill(process_, SIGKILL);
    waitpid(process_, nullptr, 0);
  }
  if (seen_ != nullptr) {
    munmap(seen_, sizeof(Seen));
  }
}

// kill(2) signals a group's newest process first, and we are older than the witness. So once a signal of the
// group has reached us, it has reached the witness too.
void SignalWitness::ask() {
  constexpr int kMostWaits = 5000;
  constexpr std::int64_t kBetweenNs = 100'000;
  sigval number{};
  number.sival_int = ++asked_;
  if (sigqueue(process_, SIGRTMAX, number) != 0) {
    return;
  }
  for (int i = 0; i < kMostWaits && seen_->answered.load(std::memory_order_acquire) != asked_; ++i) {
    pause_for(kBetweenNs);
  }
}

// True if the witness saw the signal anew, and within the last second: an older one to the group may have been merged
// with another one of ours.
bool SignalWitness::has_seen(int signal) {
  constexpr std::uint64_t kSameNs = 1'000'000'000;
  const auto place = static_cast<std::size_t>(signal);
  const std::uint64_t last = seen_->last_ns[place].load(std::memory_order_relaxed);
  const bool is_new = last != known_ns_[place];
  known_ns_[place] = last;
  return is_new && now_ns() - last < kSameNs;
}

bool SignalWitness::saw(int signal) {
  constexpr int kLooks = 20;
  constexpr std::int64_t kBetweenNs = 1'000'000;
  if (process_ <= 0 || signal <= 0 || signal >= NSIG) {
    return false;
  }
  ask();
  for (int look = 0; look < kLooks; ++look) {
    if (has_seen(signal)) {
      return true;
    }
    pause_for(kBetweenNs);
  }
  return has_seen(signal);
}

}  // namespace ration::cli
