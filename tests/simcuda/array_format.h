// What an element of each CUarray_format is. Layer: none. Threads: any.
#pragma once
#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>

#include <cstddef>

namespace simcuda {

struct FormatPlane {
  unsigned channels;
  unsigned across = 1, down = 1;  // elements of the array to one of the plane
};

struct Format {
  CUarray_format format;
  unsigned channels;       // 0: 1, 2 or 4, as the program likes
  unsigned element_bytes;  // of a channel where the program chooses their number or the format has planes
  unsigned block = 1;      // elements to a side of what is stored as one
  CUarray_format plane_format = CU_AD_FORMAT_MAX;
  unsigned planes = 1;
  FormatPlane plane[3] = {};
};

// Null: there is no such format.
const Format *find_format(CUarray_format format);

}  // namespace simcuda
