#include "base/address_space.h"

#include <sys/mman.h>
#include <unistd.h>

#include <atomic>

namespace ration {
namespace {

using Number = std::atomic<std::uint64_t>;

// The number is in a page that the kernel zeroes in a forked child (madvise(2), MADV_WIPEONFORK, Linux 4.14). The child
// inherits `last`, so it draws a number that its parent does not have.
constinit Number last{0};
constinit Number no_page{0};  // if no page could be made, `page` is its address, and the process ID is used

Number *make_page() {
  void *const mapped = mmap(nullptr, sizeof(Number), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  const bool wiped = mapped != MAP_FAILED && madvise(mapped, sizeof(Number), MADV_WIPEONFORK) == 0;
  Number *const made = wiped ? static_cast<Number *>(mapped) : &no_page;
  Number *others = nullptr;
  const bool first = address_space::page.compare_exchange_strong(others, made, std::memory_order_acq_rel);
  if (mapped != MAP_FAILED && !(first && wiped)) {
    munmap(mapped, sizeof(Number));
  }
  return first ? made : others;
}

}  // namespace

namespace address_space {

constinit std::atomic<Number *> page{nullptr};

std::uint64_t find_number() {
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

}  // namespace address_space

bool Birthplace::is_here() const {
  return address_space_ == this_address_space() && process_ == getpid();
}

}  // namespace ration
