// Reads the options of `ration find-min` and `ration find-faults`. Layer: cli. Threads: pure functions.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <variant>

#include "cli/base/verbs.h"
#include "cli/find/limit_search.h"

namespace ration::cli {

struct FindOptions {
  std::optional<std::chrono::milliseconds> timeout;  // of each run; nullopt: timeout_after() chooses it
  Tolerance tolerance;
};

// Returns the options, or one sentence that says what is wrong.
std::variant<FindOptions, std::string> read_find_options(const FindMinRequest &request);
std::variant<FindOptions, std::string> read_find_options(const FindFaultsRequest &request);

}  // namespace ration::cli
