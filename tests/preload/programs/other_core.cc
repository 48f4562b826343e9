// A core of another build, as a half-finished update leaves one: well-formed, and not ours.
#include "door.h"

extern "C" __attribute__((visibility("default"))) const RationCore *ration_core_start(const RationDoor *) {
  static void *const bodies[1] = {nullptr};
  static const RationCore core = {"0.0.0-other", bodies, 1, nullptr, nullptr, bodies, 1};
  return &core;
}
