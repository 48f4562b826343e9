// CUDA arrays: memory that has a shape and no address. An array or a mipmapped array owns its memory; levels and planes
// are also arrays, but own no memory. Rows are stored in multiples of 64 bytes, eight rows at a time, level after
// level, and the total is a multiple of 64 KiB, as with tiles.
// Layer: driver.h. Threads: under Driver::mutex.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "tests/simcuda/array_format.h"
#include "tests/simcuda/driver.h"

namespace simcuda {

inline constexpr std::uint64_t kArrayGranuleBytes = 64 * 1024;

struct Array {
  ArrayMemory *memory = nullptr;
  CUDA_ARRAY3D_DESCRIPTOR shape = {};
  bool view = false;  // a level or a plane
  std::uint64_t offset = 0;
  std::uint64_t row_bytes = 0, rows = 0, slices = 0;  // accessible to the program; 0 in an array of several planes
  std::uint64_t pitch = 0, slice_bytes = 0;           // storage of one row and of one slice
};

struct ArrayMemory {
  Context *context = nullptr;
  CUDA_ARRAY3D_DESCRIPTOR shape = {};
  bool mipmapped = false;
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;   // charged bytes; 0 if memory is mapped later
  std::uint64_t needed = 0;  // bytes that the array needs in either case
  std::uint64_t id = 0;
  std::vector<std::unique_ptr<Array>> parts;                          // an array and its planes, or the levels
  std::map<std::uint64_t, std::shared_ptr<const MemoryHold>> mapped;  // by tile (array_tiles.h), if mapped later
};

inline bool layered(const CUDA_ARRAY3D_DESCRIPTOR &shape) {
  return (shape.Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP)) != 0;
}

// Returns INVALID_VALUE if no device, or not this device, can create this array.
CUresult check_shape(const Device &device, const CUDA_ARRAY3D_DESCRIPTOR &shape, bool mipmapped);
// The maximum number of levels: 1 + floor(log2(largest side)).
unsigned most_levels(const CUDA_ARRAY3D_DESCRIPTOR &shape);
// The extent of a level; the number of layers and faces does not shrink.
CUDA_ARRAY3D_DESCRIPTOR shape_of_level(const CUDA_ARRAY3D_DESCRIPTOR &shape, unsigned level);
// Fills in parts and `needed`. REQUIRES: check_shape succeeded.
void lay_out(ArrayMemory &memory, unsigned levels);

// Allocates memory for a context's new array. Under the lock. On an error nothing stays allocated.
CUresult create_array_memory(Context &context, const CUDA_ARRAY3D_DESCRIPTOR &shape, bool mipmapped, unsigned levels,
                             ArrayMemory **memory);
// Returns null if no live array has this handle.
Array *find_array(CUarray handle);
ArrayMemory *find_mipmapped_array(CUmipmappedArray handle);
// Waits for the work of the array's context, as a free does, and releases the memory.
void destroy_array_memory(Lock &lock, ArrayMemory &memory);

}  // namespace simcuda
