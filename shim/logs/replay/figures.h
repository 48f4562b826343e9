// What a measured replay is printed as, by pool_replay and `ration replay`.
// Layer: logs. Threads: pure functions.
#pragma once

#include <nlohmann/json.hpp>

#include "logs/replay/replay.h"

namespace ration::pool::replay {

// Adds times and memory of a measurement that did not stop.
void add_figures(const Measurement &measured, nlohmann::ordered_json &result);

}  // namespace ration::pool::replay
