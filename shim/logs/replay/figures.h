// The figures that pool_replay and `ration replay` print for a measured replay.
// Layer: logs. Threads: pure functions.
#pragma once

#include <nlohmann/json.hpp>

#include "logs/replay/replay.h"

namespace ration::pool::replay {

// Adds the times and the memory from a measurement in which there was room for every operation.
void add_figures(const Measurement &measured, nlohmann::ordered_json &result);

}  // namespace ration::pool::replay
