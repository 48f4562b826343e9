#include "ledger/process_identity.h"

#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

#include "base/clock.h"
#include "ledger/process_end.h"

namespace ration::ledger {
namespace {

using Number = std::atomic<std::uint64_t>;

// The number is in a page that the kernel zeroes in a forked child (madvise(2), MADV_WIPEONFORK, Linux 4.14). The child
// inherits `last`, so it draws a number that its parent does not have.
constinit std::atomic<Number *> page{nullptr};
constinit Number last{0};
constinit Number no_page{0};  // `page` is its address where no page could be made: the process ID then serves instead

Number *make_page() {
  void *const mapped = mmap(nullptr, sizeof(Number), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  const bool wiped = mapped != MAP_FAILED && madvise(mapped, sizeof(Number), MADV_WIPEONFORK) == 0;
  Number *const made = wiped ? static_cast<Number *>(mapped) : &no_page;
  Number *others = nullptr;
  const bool first = page.compare_exchange_strong(others, made, std::memory_order_acq_rel);
  if (mapped != MAP_FAILED && !(first && wiped)) {
    munmap(mapped, sizeof(Number));
  }
  return first ? made : others;
}

}  // namespace

std::uint64_t random_number() {
  std::uint64_t number = 0;
  const bool random = getrandom(&number, sizeof(number), GRND_NONBLOCK) == sizeof(number);
  return random ? number : now_ns() ^ static_cast<std::uint64_t>(getpid()) << 40;
}

ProcessIdentity this_process() {
  ProcessIdentity process;
  process.identity = random_number();
  process.pid = getpid();
  process.uid = geteuid();
  process.pid_namespace = this_pid_namespace();
  process.start_unix_ns = unix_ns();
  char program[4096];
  const ssize_t length = readlink("/proc/self/exe", program, sizeof(program));
  process.program = length > 0 ? std::string(program, static_cast<std::size_t>(length)) : program_invocation_name;
  return process;
}

std::uint64_t this_address_space() {
  Number *number = page.load(std::memory_order_acquire);
  if (number == nullptr) {
    number = make_page();
  }
  if (number == &no_page) {
    return std::uint64_t{1} << 63 | static_cast<std::uint64_t>(getpid());
  }
  std::uint64_t here = number->load(std::memory_order_relaxed);
  if (here == 0) {
    const std::uint64_t next = last.fetch_add(1, std::memory_order_relaxed) + 1;
    here = number->compare_exchange_strong(here, next, std::memory_order_relaxed) ? next : here;
  }
  return here;
}

}  // namespace ration::ledger
