// The limit under which a refused request would have succeeded, as far as a log shows it. Layer: logs.
// Threads: pure functions.
#pragma once

#include <cstdint>
#include <string>

#include "logs/history/history.h"

namespace ration::logs {

// The limit that the refused request `oom` needed on `device`, which is as it was then. `has_all`: no earlier record is
// missing. `is_first`: nothing was refused before; under a larger limit, earlier requests might be live as well.
// Design: design/log.md#advised-limits
History::Need need_of(const Record &oom, const History::Device &device, bool has_all, bool is_first);

// A change by the user that would have prevented the refusal; one sentence.
std::string remedy(const History::Refusal &refusal);

}  // namespace ration::logs
