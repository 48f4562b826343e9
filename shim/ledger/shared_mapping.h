// Maps a file of the ledger for reading and writing: not inherited by forked children, and never locked in memory, so
// that mlockall(2) with MCL_FUTURE and a small RLIMIT_MEMLOCK does not refuse it.
// Layer: ledger. Threads: any. A mapping is never moved.
// Design: design/first-use.md#locked-memory
#pragma once

#include <cstddef>

namespace ration::ledger {

// The first `bytes` of the file, which may be shorter: pages past its end must not be touched. nullptr: errno says why.
void *map_shared(int descriptor, std::size_t bytes);

// Whether the page that the first `bytes` of the mapping end in is there: pages before it are, too. One system call.
bool has_pages(const void *mapped, std::size_t bytes);

}  // namespace ration::ledger
