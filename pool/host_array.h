// Host memory of a table that grows without a pause: below kPagesFrom bytes from operator new, from there on pages of
// the system. Fresh pages are zero without being touched, and to enlarge them moves page-table entries instead of
// bytes. Layer: pool, a leaf (standard library and the C library's mmap). Threads: any. Owns: nothing; the caller gives
// back.
// Design: design/placement.md#tables-without-a-pause
#pragma once

#include <cstddef>

namespace ration::pool::host_array {

// At this size a copy costs some ten microseconds.
inline constexpr std::size_t kPagesFrom = std::size_t{256} << 10;

// Zeroed, aligned to `alignment` (a power of two, at most a page); null where the host has none.
[[nodiscard]] void *take(std::size_t bytes, std::size_t alignment) noexcept;
// `items` with room for `bytes`; the first `had` stay, the others are unspecified. Null where the host has none:
// `items` are as they were.
[[nodiscard]] void *enlarge(void *items, std::size_t had, std::size_t bytes, std::size_t alignment) noexcept;
// REQUIRES: the size and alignment of its take() or enlarge(). Null does nothing.
void give(void *items, std::size_t bytes, std::size_t alignment) noexcept;

}  // namespace ration::pool::host_array
