// The properties of an element of each CUarray_format. Layer: none. Threads: any.
#pragma once
#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>

#include <cstddef>

namespace simcuda {

struct FormatPlane {
  unsigned channels;
  unsigned across = 1, down = 1;  // number of array elements per element of the plane
};

struct Format {
  CUarray_format format;
  unsigned channels;       // 0: the program chooses 1, 2 or 4
  unsigned element_bytes;  // of one channel, if the program chooses their number or the format has planes
  unsigned block = 1;      // side length, in elements, of a compressed block
  CUarray_format plane_format = CU_AD_FORMAT_MAX;
  unsigned planes = 1;
  FormatPlane plane[3] = {};
};

// Returns null if there is no such format.
const Format *find_format(CUarray_format format);

}  // namespace simcuda
