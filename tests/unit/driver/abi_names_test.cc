// The names under which programs call the driver map to the same exports as in the toolkit's cuda.h.
#ifdef RATION_CUDA_TOOLKIT

#include <cuda.h>

#include <string>

#include "tests/catch.h"

#define QUOTE(name) #name
#define text_of(name) std::string(QUOTE(name))

TEST_CASE("a function's plain name means the same export as in cuda.h") {
#include "abi_names.inc"
}

#undef text_of
#undef QUOTE

#endif
