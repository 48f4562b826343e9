// The driver functions that a program looked up but that Ration does not know. Layer: logs. Threads: pure functions.
#pragma once

#include <string>
#include <vector>

#include "logs/history/history.h"

namespace ration::logs {

// Empty if there are no unknown functions.
std::vector<std::string> unknown_functions_text(const History &history);
// The functions that, judging by their names, may allocate memory or begin captures.
std::vector<std::string> unknown_that_take_memory(const History::Asked &asked);

}  // namespace ration::logs
