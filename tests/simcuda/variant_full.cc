// The complete driver. Layer: driver.h.
#include "tests/simcuda/driver.h"

namespace simcuda {
const bool kImpliedContext = false;
}  // namespace simcuda
