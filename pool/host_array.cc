#include "pool/host_array.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <new>

namespace ration::pool::host_array {
namespace {

// Restores errno: calls made for the program must not change its value.
class KeepErrno {
 public:
  KeepErrno() = default;
  KeepErrno(const KeepErrno &) = delete;
  KeepErrno &operator=(const KeepErrno &) = delete;
  ~KeepErrno() { errno = before_; }

 private:
  int before_ = errno;
};

void *or_null(void *pages) noexcept {
  return pages == MAP_FAILED ? nullptr : pages;
}

void *take_pages(std::size_t bytes) noexcept {
  return or_null(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
}

void *take_unset(std::size_t bytes, std::size_t alignment) noexcept {
  return operator new (bytes, std::align_val_t{alignment}, std::nothrow);
}

}  // namespace

void *take(std::size_t bytes, std::size_t alignment) noexcept {
  const KeepErrno keep;
  if (bytes >= kPagesFrom) return take_pages(bytes);
  void *items = take_unset(bytes, alignment);
  return items == nullptr ? nullptr : std::memset(items, 0, bytes);
}

void *enlarge(void *items, std::size_t had, std::size_t bytes, std::size_t alignment) noexcept {
  const KeepErrno keep;
  if (had >= kPagesFrom) return or_null(mremap(items, had, bytes, MREMAP_MAYMOVE));
  void *fresh = bytes >= kPagesFrom ? take_pages(bytes) : take_unset(bytes, alignment);
  if (fresh == nullptr) return nullptr;
  if (had != 0) std::memcpy(fresh, items, had);
  give(items, had, alignment);
  return fresh;
}

void give(void *items, std::size_t bytes, std::size_t alignment) noexcept {
  const KeepErrno keep;
  if (bytes >= kPagesFrom) {
    munmap(items, bytes);
  } else {
    operator delete (items, std::align_val_t{alignment});
  }
}

}  // namespace ration::pool::host_array
