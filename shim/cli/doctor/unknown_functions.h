// Explains which functions a program asked the driver for that Ration does not know. Layer: cli. Threads: any.
#pragma once

#include <string>
#include <vector>

#include "logs/reader/log_end.h"

namespace ration::cli {

std::vector<std::string> unknown_functions_text(const std::string &log, const logs::LogEnd &end);
// One object, schema ration.unknown/1 (README.md).
std::string unknown_functions_json(const std::string &log, const logs::LogEnd &end);

}  // namespace ration::cli
