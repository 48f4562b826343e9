// Numbered points in the ledger's code at which a process may die, so that tests can try every point.
// Layer: ledger. In an installed build `at` does nothing.
#pragma once

#include <array>

namespace ration::ledger {

enum class KillPoint {
#define RATION_KILL_POINT(name, step) name,
#include "ledger/kill_points.inc"
#undef RATION_KILL_POINT
};

inline constexpr std::array kKillPointSteps = {
#define RATION_KILL_POINT(name, step) step,
#include "ledger/kill_points.inc"
#undef RATION_KILL_POINT
};

#ifdef RATION_LEDGER_KILL_POINTS
// Called at every point, unless it is nullptr.
inline void (*kill_point_reached)(KillPoint) = nullptr;
inline void at(KillPoint point) {
  if (kill_point_reached != nullptr) {
    kill_point_reached(point);
  }
}
#else
inline void at(KillPoint) {}
#endif

}  // namespace ration::ledger
