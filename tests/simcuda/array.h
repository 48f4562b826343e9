// CUDA arrays: memory that has a shape and no address. An array or a mipmapped array owns its memory; levels and planes
// are arrays, too, and own none. Each is stored as rows of whole 64 bytes, eight rows at a time, level behind level,
// and all of it in whole 64 KiB, as tiles are. Layer: driver.h. Threads: under Driver::mutex.
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
  std::uint64_t row_bytes = 0, rows = 0, slices = 0;  // what the program can reach; 0 in an array of several planes
  std::uint64_t pitch = 0, slice_bytes = 0;           // what that takes
};

struct ArrayMemory {
  Context *context = nullptr;
  CUDA_ARRAY3D_DESCRIPTOR shape = {};
  bool mipmapped = false;
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;   // what it costs: 0 where memory is mapped later
  std::uint64_t needed = 0;  // what it would cost in any case
  std::uint64_t id = 0;
  std::vector<std::unique_ptr<Array>> parts;                          // an array and its planes, or the levels
  std::map<std::uint64_t, std::shared_ptr<const MemoryHold>> mapped;  // by tile (array_tiles.h), where mapped later
};

// INVALID_VALUE for what no device, or not this one, can make of it.
CUresult check_shape(const Device &device, const CUDA_ARRAY3D_DESCRIPTOR &shape, bool mipmapped);
// As many levels as there can be: 1 + floor(log2(largest side)).
unsigned most_levels(const CUDA_ARRAY3D_DESCRIPTOR &shape);
// The extent of a level; layers and faces stay as many.
CUDA_ARRAY3D_DESCRIPTOR shape_of_level(const CUDA_ARRAY3D_DESCRIPTOR &shape, unsigned level);
// Fills in parts and `needed`. REQUIRES: check_shape was content.
void lay_out(ArrayMemory &memory, unsigned levels);

// Memory for a context's new array. Under the lock; errors leave nothing behind.
CUresult create_array_memory(Context &context, const CUDA_ARRAY3D_DESCRIPTOR &shape, bool mipmapped, unsigned levels,
                             ArrayMemory **memory);
// Null for a handle that no living array has.
Array *find_array(CUarray handle);
ArrayMemory *find_mipmapped_array(CUmipmappedArray handle);
// Waits for what its context does, as a free does, and gives the memory back.
void destroy_array_memory(Lock &lock, ArrayMemory &memory);

}  // namespace simcuda
