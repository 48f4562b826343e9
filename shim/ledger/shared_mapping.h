// Maps a file of the ledger for reading and writing. Forked children do not inherit the mapping. The mapping is never
// locked in memory, so mlockall(2) with MCL_FUTURE and a small RLIMIT_MEMLOCK does not make it fail.
// Layer: ledger. Threads: any. A mapping is never moved.
// Design: design/first-use.md#locked-memory
#pragma once

#include <cstddef>

namespace ration::ledger {

// Maps the first `bytes` of the file, which may be shorter: pages past its end must not be touched. Returns nullptr on
// failure; errno says why.
void *map_shared(int descriptor, std::size_t bytes);

// True if the mapping's first `bytes` bytes are backed by the file: checks that the last page of them exists. Costs one
// system call.
bool has_pages(const void *mapped, std::size_t bytes);

}  // namespace ration::ledger
