// Identifies this address space, so that a forked child can tell what it did not inherit from its parent.
// Layer: ledger. Threads: any. Owns: one page of the process, for good.
#pragma once

#include <cstdint>

namespace ration::ledger {

// Differs between parent and child, however many forks lie between them. A process ID may be equal: across PID
// namespaces, and after it wraps around.
std::uint64_t this_address_space();

}  // namespace ration::ledger
