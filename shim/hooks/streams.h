// Which stream the default one is in either flavour of a call. Layer: hooks. Values.
#pragma once

#include "driver/abi.h"

namespace ration::hooks {

// The handle that means the same stream whichever flavour of a call it is given to.
inline CUstream legacy(CUstream stream) {
  return stream != nullptr ? stream : CU_STREAM_LEGACY;
}
inline CUstream per_thread(CUstream stream) {
  return stream != nullptr ? stream : CU_STREAM_PER_THREAD;
}

}  // namespace ration::hooks
