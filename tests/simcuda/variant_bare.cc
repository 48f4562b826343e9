// The minimal driver, without context functions. Layer: driver.h.
#include "tests/simcuda/driver.h"

namespace simcuda {
const bool kImpliedContext = true;
}  // namespace simcuda
