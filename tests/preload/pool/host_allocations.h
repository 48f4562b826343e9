// Counts the calling thread's calls of malloc and its kin: the program's own definitions precede libc's, for every
// library of the process without an allocator of its own.
// Threads: each counts for itself.
#pragma once

namespace preload::pool {

unsigned long long host_allocations() noexcept;

}  // namespace preload::pool
