// How an array whose memory is mapped later is cut: into tiles of 64 KiB, level by level, in a level slice by slice and
// row by row; behind them the tail, of all levels that are too small for a tile, and of all their layers. An array of
// deferred mapping is mapped as a whole. Layer: array.h. Threads: under Driver::mutex.
#pragma once
#include "tests/simcuda/array.h"

namespace simcuda {

inline constexpr std::uint64_t kTileBytes = kArrayGranuleBytes;

// In elements.
struct Tile {
  unsigned width, height, depth;
};
Tile tile_of(const CUDA_ARRAY3D_DESCRIPTOR &shape);

// As many as there are levels, if none is too small for a tile.
unsigned first_tail_level(const ArrayMemory &memory);
std::uint64_t tail_tiles(const ArrayMemory &memory);

// Tiles whose numbers follow each other.
struct TileRun {
  std::uint64_t first = 0, count = 0;
};

// What an operation is about, and how many bytes of a tile pool belong to it.
struct TileRegion {
  std::vector<TileRun> runs;
  std::uint64_t bytes = 0;
};

// INVALID_VALUE for what the array has not, or what is not cut along its tiles. REQUIRES: memory is mapped later.
CUresult region_of(const ArrayMemory &memory, const CUarrayMapInfo &asked, TileRegion *region);

}  // namespace simcuda
