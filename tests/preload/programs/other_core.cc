// A core of another build, as an incomplete update leaves it: well-formed, but of another version.
#include "core_abi.h"

extern "C" __attribute__((visibility("default"))) const RationCoreAbi *ration_core_start(const RationPreloadAbi *) {
  static void *const bodies[1] = {nullptr};
  static const RationCoreAbi core = {"0.0.0-other", bodies, 1, nullptr, nullptr, bodies, 1, nullptr};
  return &core;
}
