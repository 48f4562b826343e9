// The limit under which a request that was refused would have been served, as far as a log tells. Layer: logs.
// Threads: pure functions.
#pragma once

#include <cstdint>
#include <string>

#include "logs/history/history.h"

namespace ration::logs {

// Of the record of a refusal on `device`, as that was then. `has_all`: no record before it is missing.
// Design: design/log.md#advised-limits
History::Need need_of(const Record &oom, const History::Device &device, bool has_all);

// What a user could change so that a refusal would not have happened; one sentence.
std::string remedy(const History::Refusal &refusal);

}  // namespace ration::logs
