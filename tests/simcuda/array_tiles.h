// The tile layout of arrays whose memory is mapped later: 64 KiB tiles, level by level, within a level slice by slice
// and row by row. The tail follows, with all layers' levels that are smaller than a tile. An array with deferred
// mapping is mapped as a whole. Layer: array.h. Threads: under Driver::mutex.
#pragma once
#include "tests/simcuda/array.h"

namespace simcuda {

inline constexpr std::uint64_t kTileBytes = kArrayGranuleBytes;

// In elements.
struct Tile {
  unsigned width, height, depth;
};
Tile tile_of(const CUDA_ARRAY3D_DESCRIPTOR &shape);

// Equals the number of levels if no level is smaller than a tile.
unsigned first_tail_level(const ArrayMemory &memory);
std::uint64_t tail_tiles(const ArrayMemory &memory);

// Consecutive tiles.
struct TileRun {
  std::uint64_t first = 0, count = 0;
};

// The tiles that an operation affects, and the bytes of the tile pool that it uses.
struct TileRegion {
  std::vector<TileRun> runs;
  std::uint64_t bytes = 0;
};

// Returns INVALID_VALUE if the array has no such part or it is not aligned to tiles. REQUIRES: its memory is mapped
// later.
CUresult region_of(const ArrayMemory &memory, const CUarrayMapInfo &request, TileRegion *region);

}  // namespace simcuda
