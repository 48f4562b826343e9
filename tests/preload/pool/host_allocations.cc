#include "host_allocations.h"

#include <errno.h>
#include <stddef.h>

namespace {

thread_local unsigned long long count = 0;

}  // namespace

unsigned long long preload::pool::host_allocations() noexcept {
  return count;
}

// These would hide a sanitizer's own allocator: nothing is counted there.
#if !defined(RATION_SANITIZED)
extern "C" {

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t items, size_t bytes);
void *__libc_realloc(void *block, size_t bytes);
void *__libc_memalign(size_t alignment, size_t bytes);

void *malloc(size_t bytes) {
  ++count;
  return __libc_malloc(bytes);
}

void *calloc(size_t items, size_t bytes) {
  ++count;
  return __libc_calloc(items, bytes);
}

void *realloc(void *block, size_t bytes) {
  ++count;
  return __libc_realloc(block, bytes);
}

void *memalign(size_t alignment, size_t bytes) {
  ++count;
  return __libc_memalign(alignment, bytes);
}

void *aligned_alloc(size_t alignment, size_t bytes) {
  return memalign(alignment, bytes);
}

int posix_memalign(void **block, size_t alignment, size_t bytes) {
  *block = memalign(alignment, bytes);
  return *block != nullptr ? 0 : ENOMEM;
}

}  // extern "C"
#endif
