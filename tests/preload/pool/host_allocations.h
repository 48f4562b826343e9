// Counts the calling thread's calls of malloc and related functions. The program defines these functions itself, so
// every library of the process without its own allocator calls them instead of libc's.
// Threads: each counts for itself.
#pragma once

namespace preload::pool {

unsigned long long host_allocations() noexcept;

}  // namespace preload::pool
