// Host memory for a table that grows without a pause. Tables below kPagesFrom bytes get it from operator new; larger
// tables get pages from the system. Fresh pages are zero without being touched, and enlarging such a table moves
// page-table entries instead of bytes. Layer: pool, a leaf (standard library and the C library's mmap). Threads: any.
// Owns: nothing; the caller gives the memory back.
// Design: design/placement.md#tables-without-a-pause
#pragma once

#include <cstddef>

namespace ration::pool::host_array {

// Copying a table of this size takes some ten microseconds.
inline constexpr std::size_t kPagesFrom = std::size_t{256} << 10;

// Returns zeroed memory, aligned to `alignment` (a power of two, at most a page), or null if host memory has run out.
[[nodiscard]] void *take(std::size_t bytes, std::size_t alignment) noexcept;
// Returns `items` enlarged to `bytes`: the first `had` bytes are kept, the others are unspecified. Returns null if the
// host has no memory; then `items` are unchanged.
[[nodiscard]] void *enlarge(void *items, std::size_t had, std::size_t bytes, std::size_t alignment) noexcept;
// REQUIRES: take() or enlarge() returned `items` with this size and alignment. Does nothing if `items` is null.
void give(void *items, std::size_t bytes, std::size_t alignment) noexcept;

}  // namespace ration::pool::host_array
