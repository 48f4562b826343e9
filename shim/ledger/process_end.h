// Tells whether a process that is ending may still have open files, and thus work running on a device. Layer: ledger.
// Threads: any. A killed process first loses its mappings, and with them its locks; its files, and with them its GPU
// contexts, are closed later.
#pragma once

#include <cstdint>

namespace ration::ledger {

// Identifies one process until the machine restarts: its ID in its PID namespace, and its start time. 0 if /proc cannot
// be read.
// Design: design/ipc.md#dying-openers
using ProcessMark = std::uint64_t;
ProcessMark this_process_mark();
std::uint64_t this_pid_namespace();  // 0: /proc cannot be read

enum class ProcessState {
  gone,  // also for a zombie without threads or a process that cannot be seen
  ending,
  lives,
};
// REQUIRES: `mark` is not 0 and belongs to a process in this PID namespace.
[[nodiscard]] ProcessState state_of(ProcessMark mark);

}  // namespace ration::ledger
