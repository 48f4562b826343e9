// Host memory for a table that grows without a pause. Below kPagesFrom bytes it comes from operator new; larger tables
// get pages from the system. Fresh pages are zero without being touched, and enlarging them moves page-table entries
// instead of bytes. Layer: pool, a leaf (standard library and the C library's mmap). Threads: any. Owns: nothing; the
// caller gives the memory back.
// Design: design/placement.md#tables-without-a-pause
#pragma once

#include <cstddef>

namespace ration::pool::host_array {

// At this size, copying takes some ten microseconds.
inline constexpr std::size_t kPagesFrom = std::size_t{256} << 10;

// Returns zeroed memory, aligned to `alignment` (a power of two, at most a page), or null if the host has none.
[[nodiscard]] void *take(std::size_t bytes, std::size_t alignment) noexcept;
// Returns `items` enlarged to `bytes`: the first `had` bytes are kept, the others are unspecified. Returns null if the
// host has no memory; then `items` are unchanged.
[[nodiscard]] void *enlarge(void *items, std::size_t had, std::size_t bytes, std::size_t alignment) noexcept;
// REQUIRES: the size and alignment with which take() or enlarge() returned `items`. Null does nothing.
void give(void *items, std::size_t bytes, std::size_t alignment) noexcept;

}  // namespace ration::pool::host_array
