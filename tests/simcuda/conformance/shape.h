// Arrays with one float per element, for the tests of arrays.
#pragma once
#include "tests/simcuda/conformance/fixture.h"

namespace simcuda::conformance {

inline CUDA_ARRAY3D_DESCRIPTOR shape(std::size_t width, std::size_t height = 0, std::size_t depth = 0,
                                     unsigned flags = 0) {
  return {width, height, depth, CU_AD_FORMAT_FLOAT, 1, flags};
}

inline CUarray new_array(const CUDA_ARRAY3D_DESCRIPTOR &request) {
  CUarray array = nullptr;
  REQUIRE(cuArray3DCreate(&array, &request) == CUDA_SUCCESS);
  return array;
}

inline CUmipmappedArray new_mipmapped(const CUDA_ARRAY3D_DESCRIPTOR &request, unsigned levels) {
  CUmipmappedArray array = nullptr;
  REQUIRE(cuMipmappedArrayCreate(&array, &request, levels) == CUDA_SUCCESS);
  return array;
}

}  // namespace simcuda::conformance
