// Whether a process that is ending still has open files, and with them work on a device. Layer: ledger. Threads: any.
// A killed process first drops its mappings, and with them its locks; its files, and so its GPU contexts, go later.
#pragma once

#include <cstdint>

namespace ration::ledger {

// One process, for as long as the machine runs: its ID in its PID namespace and when it began. 0: /proc does not say.
// Design: design/ipc.md#dying-openers
using ProcessMark = std::uint64_t;
ProcessMark this_process_mark();
std::uint64_t this_pid_namespace();  // 0: /proc does not say

enum class ProcessState {
  gone,  // or it only waits for its parent, or it cannot be seen
  ending,
  lives,
};
// REQUIRES: the mark of a process of this PID namespace, not 0.
[[nodiscard]] ProcessState state_of(ProcessMark mark);

}  // namespace ration::ledger
