// The limit under which a refused request would have succeeded, as far as the log shows. Layer: logs.
// Threads: pure functions.
#pragma once

#include <cstdint>
#include <string>

#include "logs/history/history.h"

namespace ration::logs {

// The limit that the refused request `oom` needed on `device`, given the device's state at the refusal. `has_all`: no
// earlier record is missing. `is_first`: nothing was refused before. Otherwise blocks refused earlier may be live under
// a larger limit. Design: design/log.md#advised-limits
History::Need need_of(const Record &oom, const History::Device &device, bool has_all, bool is_first);

// One sentence that says what the user can change to avoid the refusal.
std::string remedy(const History::Refusal &refusal);

}  // namespace ration::logs
