#include "host_memory.h"

#include <cstddef>
#include <cstdlib>
#include <new>

namespace {

namespace host_memory = ration::pool::host_memory;

void *obtain(std::size_t bytes, std::size_t alignment) noexcept {
  if (host_memory::left == 0) {
    ++host_memory::refused;
    return nullptr;
  }
  if (host_memory::left != host_memory::kPlenty) --host_memory::left;
  if (alignment <= alignof(std::max_align_t)) return std::malloc(bytes != 0 ? bytes : 1);
  return std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
}

void *obtain_or_throw(std::size_t bytes, std::size_t alignment) {
  void *memory = obtain(bytes, alignment);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

constexpr std::size_t kUsual = 1;

}  // namespace

// The array forms call these.
void *operator new(std::size_t bytes) {
  return obtain_or_throw(bytes, kUsual);
}
void *operator new(std::size_t bytes, const std::nothrow_t &) noexcept {
  return obtain(bytes, kUsual);
}
void *operator new(std::size_t bytes, std::align_val_t alignment) {
  return obtain_or_throw(bytes, static_cast<std::size_t>(alignment));
}
void *operator new(std::size_t bytes, std::align_val_t alignment, const std::nothrow_t &) noexcept {
  return obtain(bytes, static_cast<std::size_t>(alignment));
}
void operator delete(void *memory) noexcept {
  std::free(memory);
}
// clang declares these only on request, and with hidden visibility the standard library would not see them.
[[gnu::visibility("default")]] void operator delete(void *memory, std::size_t) noexcept {
  std::free(memory);
}
void operator delete(void *memory, std::align_val_t) noexcept {
  std::free(memory);
}
[[gnu::visibility("default")]] void operator delete(void *memory, std::size_t, std::align_val_t) noexcept {
  std::free(memory);
}
