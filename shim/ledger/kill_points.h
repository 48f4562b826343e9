// Where a process may die in the middle of the ledger's work: numbered, so that tests can try every one of them.
// Layer: ledger. In what is installed `at` is nothing.
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
// What the test wants to happen there; nullptr: nothing.
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
