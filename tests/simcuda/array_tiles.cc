// The shapes of tiles are the standard ones of the graphics interfaces (Vulkan, "Standard Sparse Image Block Shapes").
#include "tests/simcuda/array_tiles.h"

#include <algorithm>
#include <bit>

namespace simcuda {
namespace {

constexpr Tile kFlat[] = {{256, 256, 1}, {256, 128, 1}, {128, 128, 1}, {128, 64, 1}, {64, 64, 1}};
constexpr Tile kDeep[] = {{64, 32, 32}, {32, 32, 32}, {32, 32, 16}, {32, 16, 16}, {16, 16, 16}};

std::uint64_t in_units(std::uint64_t value, std::uint64_t unit) {
  return (value + unit - 1) / unit;
}

bool smaller(const CUDA_ARRAY3D_DESCRIPTOR &shape, const Tile &tile) {
  return shape.Width < tile.width || shape.Height < tile.height || std::max<std::size_t>(shape.Depth, 1) < tile.depth;
}

// One side of a level: its length and the length of a tile.
struct Side {
  std::uint64_t length, tile;
  std::uint64_t tiles() const { return in_units(length, tile); }
  // Counts whole tiles; the level's edge may cut off the last one.
  bool has(std::uint64_t offset, std::uint64_t extent) const {
    const std::uint64_t end = offset + extent;
    return extent != 0 && offset % tile == 0 && end <= length && (end % tile == 0 || end == length);
  }
};

// The tiles of a level; a layer counts as a slice.
struct Level {
  Side x, y, z;
  std::uint64_t layers;
  std::uint64_t tiles() const { return x.tiles() * y.tiles() * z.tiles() * layers; }
};

Level cut(const CUDA_ARRAY3D_DESCRIPTOR &shape) {
  const Tile tile = tile_of(shape);
  const std::uint64_t depth = std::max<std::size_t>(shape.Depth, 1);
  const bool layers = layered(shape);
  return {{shape.Width, tile.width}, {shape.Height, tile.height}, {layers ? 1 : depth, tile.depth}, layers ? depth : 1};
}

// The number of a level's first tile. After all full levels it is the number of the tail's first tile.
std::uint64_t tiles_before(const ArrayMemory &memory, unsigned level) {
  std::uint64_t tiles = 0;
  for (unsigned i = 0; i < level; ++i) tiles += cut(memory.parts[i]->shape).tiles();
  return tiles;
}

void add(TileRegion &region, std::uint64_t first, std::uint64_t count) {
  region.bytes += count * kTileBytes;
  if (!region.runs.empty() && region.runs.back().first + region.runs.back().count == first) {
    region.runs.back().count += count;
  } else {
    region.runs.push_back({first, count});
  }
}

CUresult part_of_level(const ArrayMemory &memory, const CUarrayMapInfo &request, TileRegion *region) {
  const auto &box = request.subresource.sparseLevel;
  if (box.level >= first_tail_level(memory)) return CUDA_ERROR_INVALID_VALUE;
  const Level level = cut(memory.parts[box.level]->shape);
  if (box.layer >= level.layers || !level.x.has(box.offsetX, box.extentWidth) ||
      !level.y.has(box.offsetY, box.extentHeight) || !level.z.has(box.offsetZ, box.extentDepth)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const std::uint64_t before = tiles_before(memory, box.level);
  const std::uint64_t x = box.offsetX / level.x.tile, across = in_units(box.extentWidth, level.x.tile);
  const std::uint64_t y = box.offsetY / level.y.tile, down = in_units(box.extentHeight, level.y.tile);
  const std::uint64_t z = box.layer + box.offsetZ / level.z.tile, deep = in_units(box.extentDepth, level.z.tile);
  for (std::uint64_t slice = z; slice < z + deep; ++slice) {
    for (std::uint64_t row = y; row < y + down; ++row) {
      add(*region, before + (slice * level.y.tiles() + row) * level.x.tiles() + x, across);
    }
  }
  return CUDA_SUCCESS;
}

CUresult part_of_tail(const ArrayMemory &memory, const CUarrayMapInfo &request, TileRegion *region) {
  const auto &part = request.subresource.miptail;
  const std::uint64_t bytes = tail_tiles(memory) * kTileBytes;
  if (part.layer != 0 || part.size == 0 || part.offset % kTileBytes != 0 || part.size % kTileBytes != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (part.offset >= bytes || part.size > bytes - part.offset) return CUDA_ERROR_INVALID_VALUE;
  add(*region, tiles_before(memory, first_tail_level(memory)) + part.offset / kTileBytes, part.size / kTileBytes);
  return CUDA_SUCCESS;
}

}  // namespace

Tile tile_of(const CUDA_ARRAY3D_DESCRIPTOR &shape) {
  const Format &format = *find_format(shape.Format);
  const unsigned element = format.element_bytes * (format.channels == 0 ? shape.NumChannels : 1u);
  const auto row = static_cast<unsigned>(std::countr_zero(element));  // every element is a power of two
  const Tile tile = shape.Depth != 0 && !layered(shape) ? kDeep[row] : kFlat[row];
  return {tile.width * format.block, tile.height * format.block, tile.depth};
}

unsigned first_tail_level(const ArrayMemory &memory) {
  const Tile tile = tile_of(memory.shape);
  unsigned level = 0;
  while (level < memory.parts.size() && !smaller(memory.parts[level]->shape, tile)) ++level;
  return level;
}

std::uint64_t tail_tiles(const ArrayMemory &memory) {
  std::uint64_t bytes = 0;
  for (unsigned level = first_tail_level(memory); level < memory.parts.size(); ++level) {
    bytes += memory.parts[level]->slice_bytes * memory.parts[level]->slices;
  }
  return in_units(bytes, kTileBytes);
}

CUresult region_of(const ArrayMemory &memory, const CUarrayMapInfo &request, TileRegion *region) {
  if ((memory.shape.Flags & CUDA_ARRAY3D_DEFERRED_MAPPING) != 0) {
    *region = {{{0, 1}}, memory.needed};
    return CUDA_SUCCESS;
  }
  switch (request.subresourceType) {
    case CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_SPARSE_LEVEL:
      return part_of_level(memory, request, region);
    case CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_MIPTAIL:
      return part_of_tail(memory, request, region);
  }
  return CUDA_ERROR_INVALID_VALUE;
}

}  // namespace simcuda
