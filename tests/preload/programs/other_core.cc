// A core of another build, as a half-finished update leaves one: well-formed, and not ours.
#include "core_abi.h"

extern "C" __attribute__((visibility("default"))) const RationCoreAbi *ration_core_start(const RationPreloadAbi *) {
  static void *const bodies[1] = {nullptr};
  static const RationCoreAbi core = {"0.0.0-other", bodies, 1, nullptr, nullptr, bodies, 1};
  return &core;
}
