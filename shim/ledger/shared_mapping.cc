#include "ledger/shared_mapping.h"

#include <sys/mman.h>

#include <cerrno>

#include "base/readable.h"

namespace ration::ledger {
namespace {

constexpr std::size_t kPage = 4096;  // the kernel rounds it up to its own page size

void give_back(void *mapped, std::size_t bytes) {
  const int error = errno;
  munmap(mapped, bytes);
  errno = error;
}

void *map_uninherited(int descriptor, std::size_t bytes) {
  void *const mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (mapped == MAP_FAILED) {
    return nullptr;
  }
  if (madvise(mapped, bytes, MADV_DONTFORK) != 0) {
    give_back(mapped, bytes);
    return nullptr;
  }
  return mapped;
}

}  // namespace

// A copy of a mapping (mremap(2) with an old size of 0) has the flags of the original. mlockall(2) with MCL_FUTURE
// gives every new mapping the locked flag, with which even one without access counts against RLIMIT_MEMLOCK; a copy
// avoids that.
void *map_shared(int descriptor, std::size_t bytes) {
  void *const first = map_uninherited(descriptor, kPage);
  if (first == nullptr) {
    return nullptr;
  }
  munlock(first, kPage);
  void *const whole = mremap(first, 0, bytes, MREMAP_MAYMOVE);
  give_back(first, kPage);
  // not every kernel with Linux's system calls can copy a mapping
  return whole != MAP_FAILED ? whole : map_uninherited(descriptor, bytes);
}

bool has_pages(const void *mapped, std::size_t bytes) {
  return is_readable(static_cast<const char *>(mapped) + bytes - sizeof(std::uint64_t));
}

}  // namespace ration::ledger
