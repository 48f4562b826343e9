// Counts the calling thread's calls of malloc and related functions. The program defines these functions itself, so
// every library in the process that has no allocator of its own calls them instead of libc's.
// Threads: each thread has its own count.
#pragma once

namespace preload::pool {

unsigned long long host_allocations() noexcept;

}  // namespace preload::pool
