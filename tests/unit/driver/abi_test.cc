// Compares our CUDA declarations with the toolkit's cuda.h: the ABI types, the prototypes of the simulated driver and
// the rows of the hook table. A difference does not compile. Without a toolkit nothing is compared, and a test says so.
#include "tests/catch.h"

#ifdef RATION_CUDA_TOOLKIT

#define __CUDA_API_VERSION_INTERNAL  // declares the older versions of each function, too
#include <cuda.h>

#include <cstddef>
#include <type_traits>

#include "abi_asserts.inc"

#include "driver/newer_abi.h"

// A function that the toolkit declares otherwise does not compile; one that is newer than the toolkit does.
#define RATION_HOOK(symbol, parameters, name, since, stream, need, closed) extern "C" CUresult symbol parameters;
#include "shim/hook_table.inc"
#undef RATION_HOOK

TEST_CASE("constants that are not enumerators equal cuda.h's"){
#include "abi_constants.inc"
}

#else

TEST_CASE("no CUDA toolkit is installed, so our declarations were not compared with it") {
  SUCCEED();
}

#endif
