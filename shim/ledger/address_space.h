// Which address space this is, so that a forked child knows what it did not get from its parent.
// Layer: ledger. Threads: any. Owns: one page of the process, for good.
#pragma once

#include <cstdint>

namespace ration::ledger {

// Never the same in parent and child, however many forks lie between them. A process ID is: in PID namespaces, and when
// it comes round again.
std::uint64_t this_address_space();

}  // namespace ration::ledger
