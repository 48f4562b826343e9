// One look as a JSON object, schema `ration.ps/1` (README.md of the shim lists the keys). Layer: cli. Threads: pure.
#pragma once

#include <string>

#include "cli/usage/process_rows.h"

namespace ration::cli {

// ASCII without a newline; bytes that are no UTF-8 are replaced. `indent` -1: on one line.
std::string usage_json(const Usage &usage, int indent);

// What is no UTF-8 becomes U+FFFD. Here, because nlohmann_json knows what is.
std::string as_utf8(const std::string &text);

}  // namespace ration::cli
