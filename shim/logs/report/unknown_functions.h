// Which functions a program asked the driver for that Ration does not know. Layer: logs. Threads: pure functions.
#pragma once

#include <string>
#include <vector>

#include "logs/history/history.h"

namespace ration::logs {

// Empty: none.
std::vector<std::string> unknown_functions_text(const History &history);
// Those that may take memory or begin captures, by their names.
std::vector<std::string> unknown_that_take_memory(const History::Asked &asked);

}  // namespace ration::logs
