// The padding rule. Arrays are stored in GOBs of 64 bytes by 8 rows, which are stacked in blocks of up to 32 in height
// and 32 in depth (drm_fourcc.h, DRM_FORMAT_MOD_NVIDIA_BLOCK_LINEAR_2D). A driver chooses the block; the hardware
// shrinks it at each level until it is less than twice the level's extent (Mesa, src/nouveau/nil, tiling). So every
// extent is padded to the largest possible block, but no array to more than twice what its GOBs alone take. If height
// and depth both just exceeded a block, padding would give four times as much, which no driver needs.
#include "policy/physical/array_bytes.h"

#include <algorithm>
#include <bit>
#include <limits>

namespace ration::policy {
namespace {

constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
constexpr std::uint64_t kGobBytes = 64, kGobRows = 8, kHighestBlock = 32, kDeepestBlock = 32;
constexpr std::uint64_t kUnitBytes = 64 * 1024;
constexpr unsigned kLargestElement = 16;

std::uint64_t times(std::uint64_t one, std::uint64_t other) {
  std::uint64_t product = 0;
  return __builtin_mul_overflow(one, other, &product) ? kMost : product;
}

std::uint64_t plus(std::uint64_t one, std::uint64_t other) {
  std::uint64_t sum = 0;
  return __builtin_add_overflow(one, other, &sum) ? kMost : sum;
}

std::uint64_t in_units(std::uint64_t value, std::uint64_t unit) {
  return value / unit + (value % unit != 0 ? 1 : 0);
}

std::uint64_t round_up(std::uint64_t value, std::uint64_t unit) {
  return times(in_units(value, unit), unit);
}

struct Plane {
  unsigned bytes = 0;  // of an element, or of a block of compressed elements; 0: no plane
  unsigned across = 1, down = 1;
};

struct Element {
  Plane planes[3] = {};
};

Element compressed(unsigned bytes) {
  return {{{bytes, 4, 4}}};
}

// One luma plane, and one plane of chroma pairs, of which each pair is shared by `across` x `down` elements.
Element two_planes(unsigned bytes, unsigned across, unsigned down) {
  return {{{bytes}, {2 * bytes, across, down}}};
}

Element element_of(CUarray_format format, unsigned channels, unsigned unknown) {
  switch (format) {
    case CU_AD_FORMAT_UNSIGNED_INT8:
    case CU_AD_FORMAT_SIGNED_INT8:
      return {{{channels}}};
    case CU_AD_FORMAT_UNSIGNED_INT16:
    case CU_AD_FORMAT_SIGNED_INT16:
    case CU_AD_FORMAT_HALF:
      return {{{2 * channels}}};
    case CU_AD_FORMAT_UNSIGNED_INT32:
    case CU_AD_FORMAT_SIGNED_INT32:
    case CU_AD_FORMAT_FLOAT:
      return {{{4 * channels}}};
    case CU_AD_FORMAT_UNORM_INT8X1:
    case CU_AD_FORMAT_SNORM_INT8X1:
      return {{{1}}};
    case CU_AD_FORMAT_UNORM_INT8X2:
    case CU_AD_FORMAT_SNORM_INT8X2:
    case CU_AD_FORMAT_UNORM_INT16X1:
    case CU_AD_FORMAT_SNORM_INT16X1:
    case CU_AD_FORMAT_YUY2:
      return {{{2}}};
    case CU_AD_FORMAT_UNORM_INT8X4:
    case CU_AD_FORMAT_SNORM_INT8X4:
    case CU_AD_FORMAT_UNORM_INT16X2:
    case CU_AD_FORMAT_SNORM_INT16X2:
    case CU_AD_FORMAT_UNORM_INT_101010_2:
    case CU_AD_FORMAT_Y210:
    case CU_AD_FORMAT_Y216:
    case CU_AD_FORMAT_AYUV:
    case CU_AD_FORMAT_Y410:
      return {{{4}}};
    case CU_AD_FORMAT_UNORM_INT16X4:
    case CU_AD_FORMAT_SNORM_INT16X4:
    case CU_AD_FORMAT_Y416:
      return {{{8}}};
    case CU_AD_FORMAT_BC1_UNORM:
    case CU_AD_FORMAT_BC1_UNORM_SRGB:
    case CU_AD_FORMAT_BC4_UNORM:
    case CU_AD_FORMAT_BC4_SNORM:
      return compressed(8);
    case CU_AD_FORMAT_BC2_UNORM:
    case CU_AD_FORMAT_BC2_UNORM_SRGB:
    case CU_AD_FORMAT_BC3_UNORM:
    case CU_AD_FORMAT_BC3_UNORM_SRGB:
    case CU_AD_FORMAT_BC5_UNORM:
    case CU_AD_FORMAT_BC5_SNORM:
    case CU_AD_FORMAT_BC6H_UF16:
    case CU_AD_FORMAT_BC6H_SF16:
    case CU_AD_FORMAT_BC7_UNORM:
    case CU_AD_FORMAT_BC7_UNORM_SRGB:
      return compressed(16);
    case CU_AD_FORMAT_NV12:
      return two_planes(1, 2, 2);
    case CU_AD_FORMAT_P010:
    case CU_AD_FORMAT_P016:
      return two_planes(2, 2, 2);
    case CU_AD_FORMAT_NV16:
      return two_planes(1, 2, 1);
    case CU_AD_FORMAT_P210:
    case CU_AD_FORMAT_P216:
      return two_planes(2, 2, 1);
    case CU_AD_FORMAT_YUV444_8bit_SemiPlanar:
      return two_planes(1, 1, 1);
    case CU_AD_FORMAT_YUV444_16bit_SemiPlanar:
      return two_planes(2, 1, 1);
    case CU_AD_FORMAT_Y444_PLANAR8:
      return {{{1}, {1}, {1}}};
    case CU_AD_FORMAT_Y444_PLANAR10:
      return {{{2}, {2}, {2}}};
    case CU_AD_FORMAT_MAX:
      break;
  }
  return {{{unknown}}};
}

struct Extent {
  std::uint64_t width, height, depth;  // none is 0
};

// Bytes of the elements alone, in GOBs, and in the largest possible blocks.
struct Range {
  std::uint64_t elements = 0, least = 0, most = 0;
};

std::uint64_t block(std::uint64_t units, std::uint64_t largest) {
  return std::bit_ceil(std::min(units, largest));
}

void add(Range &range, const Extent &extent, const Plane &plane) {
  const std::uint64_t width = times(in_units(extent.width, plane.across), plane.bytes);
  const std::uint64_t rows = in_units(in_units(extent.height, plane.down), kGobRows);
  range.elements = plus(range.elements, times(times(width, in_units(extent.height, plane.down)), extent.depth));
  const std::uint64_t gob_column = times(round_up(width, kGobBytes), kGobRows);
  range.least = plus(range.least, times(times(gob_column, rows), extent.depth));
  const std::uint64_t high = round_up(rows, block(rows, kHighestBlock));
  const std::uint64_t deep = round_up(extent.depth, block(extent.depth, kDeepestBlock));
  range.most = plus(range.most, times(times(gob_column, high), deep));
}

Range range_of(const CUDA_ARRAY3D_DESCRIPTOR &shape, unsigned levels, unsigned unknown) {
  if (is_mapped_later(shape)) {
    return {};
  }
  const bool layered = (shape.Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP)) != 0;
  const std::uint64_t layers = layered ? std::max<std::uint64_t>(shape.Depth, 1) : 1;
  Extent extent{std::max<std::uint64_t>(shape.Width, 1), std::max<std::uint64_t>(shape.Height, 1),
                layered ? 1 : std::max<std::uint64_t>(shape.Depth, 1)};
  const auto most_levels = static_cast<unsigned>(std::bit_width(std::max({extent.width, extent.height, extent.depth})));
  const Element element = element_of(shape.Format, std::clamp(shape.NumChannels, 1u, 4u), unknown);
  Range layer;
  for (unsigned level = std::clamp(levels, 1u, most_levels); level > 0; --level) {
    for (const Plane &plane : element.planes) {
      if (plane.bytes != 0) {
        add(layer, extent, plane);
      }
    }
    extent = {std::max<std::uint64_t>(extent.width / 2, 1), std::max<std::uint64_t>(extent.height / 2, 1),
              std::max<std::uint64_t>(extent.depth / 2, 1)};
  }
  const std::uint64_t least = round_up(times(layer.least, layers), kUnitBytes);
  return {times(layer.elements, layers), least,
          std::min(round_up(times(layer.most, layers), kUnitBytes), times(least, 2))};
}

}  // namespace

std::uint64_t array_bytes(const CUDA_ARRAY3D_DESCRIPTOR &shape, unsigned levels) noexcept {
  return range_of(shape, levels, kLargestElement).most;
}

std::uint64_t least_array_bytes(const CUDA_ARRAY3D_DESCRIPTOR &shape, unsigned levels) noexcept {
  return range_of(shape, levels, 1).elements;
}

}  // namespace ration::policy
