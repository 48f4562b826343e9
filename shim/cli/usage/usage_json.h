// A snapshot as a JSON object, schema `ration.ps/1`; the README of the command lists the keys.
// Layer: cli. Threads: pure functions.
#pragma once

#include <string>

#include "cli/usage/process_rows.h"

namespace ration::cli {

// Returns ASCII without a final newline. Bytes that are not UTF-8 are replaced. `indent` -1: all on one line.
std::string usage_json(const Usage &usage, int indent);

// Replaces bytes that are not UTF-8 with U+FFFD. It is declared here because it uses nlohmann_json.
std::string as_utf8(const std::string &text);

}  // namespace ration::cli
