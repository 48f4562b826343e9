#include <algorithm>
#include <bit>

#include "tests/simcuda/array.h"
#include "tests/simcuda/bytes.h"
#include "tests/simcuda/device_attributes.h"

namespace simcuda {
namespace {

constexpr std::uint64_t kRowBytes = 64, kRows = 8;  // of one tile
constexpr CUdevice_attribute kNone = CU_DEVICE_ATTRIBUTE_MAX;

struct Limits {
  CUdevice_attribute width, height, depth;
};

bool within(const Device &device, const CUDA_ARRAY3D_DESCRIPTOR &shape, const Limits &limits) {
  const auto fits = [&](std::size_t extent, CUdevice_attribute limit) {
    return limit == kNone || extent <= static_cast<std::size_t>(attribute_of(device, limit));
  };
  return fits(shape.Width, limits.width) && fits(shape.Height, limits.height) && fits(shape.Depth, limits.depth);
}

// The table of cuArray3DCreate, and the column of cuMipmappedArrayCreate where it differs.
bool texture_fits(const Device &device, const CUDA_ARRAY3D_DESCRIPTOR &shape, bool mipmapped) {
  const bool cube = (shape.Flags & CUDA_ARRAY3D_CUBEMAP) != 0, layers = (shape.Flags & CUDA_ARRAY3D_LAYERED) != 0;
  if (cube && layers) {
    return within(device, shape,
                  {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_LAYERED_WIDTH, kNone,
                   CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_LAYERED_LAYERS});
  }
  if (cube) return within(device, shape, {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_WIDTH, kNone, kNone});
  if (layers && shape.Height == 0) {
    return within(device, shape,
                  {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LAYERED_WIDTH, kNone,
                   CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LAYERED_LAYERS});
  }
  if (layers) {
    return within(
        device, shape,
        {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_WIDTH, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_HEIGHT,
         CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_LAYERS});
  }
  if (shape.Depth != 0) {
    return within(device, shape,
                  {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_WIDTH, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_HEIGHT,
                   CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_DEPTH}) ||
           within(device, shape,
                  {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_WIDTH_ALTERNATE,
                   CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_HEIGHT_ALTERNATE,
                   CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_DEPTH_ALTERNATE});
  }
  if (shape.Height == 0) {
    return within(device, shape,
                  {mipmapped ? CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_MIPMAPPED_WIDTH
                             : CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_WIDTH,
                   kNone, kNone});
  }
  if (mipmapped) {
    return within(device, shape,
                  {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_MIPMAPPED_WIDTH,
                   CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_MIPMAPPED_HEIGHT, kNone});
  }
  if ((shape.Flags & CUDA_ARRAY3D_TEXTURE_GATHER) != 0) {
    return within(device, shape,
                  {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_GATHER_WIDTH,
                   CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_GATHER_HEIGHT, kNone});
  }
  return within(device, shape,
                {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_WIDTH, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_HEIGHT, kNone});
}

// The surface column: only the device's 1D limits are smaller for surfaces than for textures.
bool surface_fits(const Device &device, const CUDA_ARRAY3D_DESCRIPTOR &shape) {
  if ((shape.Flags & CUDA_ARRAY3D_SURFACE_LDST) == 0 || shape.Height != 0 || layered(shape)) return true;
  return within(device, shape, {CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE1D_WIDTH, kNone, kNone});
}

// Flags that no array has are no error: H100, H200, driver 580.159: bit 31 is accepted.
bool right_shape(const CUDA_ARRAY3D_DESCRIPTOR &shape) {
  if (shape.Width == 0) return false;
  if ((shape.Flags & CUDA_ARRAY3D_CUBEMAP) != 0) {
    const bool layers = (shape.Flags & CUDA_ARRAY3D_LAYERED) != 0;
    if (shape.Width != shape.Height || shape.Depth == 0 || shape.Depth % 6 != 0) return false;
    if (!layers && shape.Depth != 6) return false;
  } else if ((shape.Flags & CUDA_ARRAY3D_LAYERED) != 0) {
    if (shape.Depth == 0) return false;
  } else if (shape.Depth != 0 && shape.Height == 0) {
    return false;
  }
  const bool plain_2d = shape.Height != 0 && shape.Depth == 0;
  if ((shape.Flags & CUDA_ARRAY3D_TEXTURE_GATHER) != 0 && !plain_2d) return false;
  return (shape.Flags & CUDA_ARRAY3D_SPARSE) == 0 || shape.Height != 0;
}

bool right_format(const CUDA_ARRAY3D_DESCRIPTOR &shape, bool mipmapped) {
  const Format *format = find_format(shape.Format);
  if (format == nullptr) return false;
  const unsigned channels = shape.NumChannels;
  if (format->channels == 0 ? channels != 1 && channels != 2 && channels != 4 : channels != format->channels) {
    return false;
  }
  if (format->block > 1 && shape.Height == 0) return false;
  if (format->planes == 1) return true;
  return shape.Height != 0 && shape.Depth == 0 && !mipmapped && (shape.Flags & CUDA_ARRAY3D_SPARSE) == 0;
}

// Appends a part after the existing ones.
void place(Array &part, const Format &format, std::uint64_t *end) {
  const CUDA_ARRAY3D_DESCRIPTOR &shape = part.shape;
  const std::uint64_t element = format.element_bytes * (format.channels == 0 ? shape.NumChannels : 1u);
  part.row_bytes = round_up(shape.Width, format.block) / format.block * element;
  part.rows = round_up(std::max<std::size_t>(shape.Height, 1), format.block) / format.block;
  part.slices = std::max<std::size_t>(shape.Depth, 1);
  part.pitch = round_up(part.row_bytes, kRowBytes);
  part.slice_bytes = part.pitch * round_up(part.rows, kRows);
  part.offset = *end;
  *end += part.slice_bytes * part.slices;
}

std::unique_ptr<Array> new_part(ArrayMemory &memory, const CUDA_ARRAY3D_DESCRIPTOR &shape, bool view) {
  auto part = std::make_unique<Array>();
  part->memory = &memory;
  part->shape = shape;
  part->view = view;
  return part;
}

}  // namespace

CUresult check_shape(const Device &device, const CUDA_ARRAY3D_DESCRIPTOR &shape, bool mipmapped) {
  const bool right = right_shape(shape) && right_format(shape, mipmapped) && texture_fits(device, shape, mipmapped) &&
                     surface_fits(device, shape);
  return right ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

unsigned most_levels(const CUDA_ARRAY3D_DESCRIPTOR &shape) {
  const std::size_t depth = layered(shape) ? 0 : shape.Depth;
  return static_cast<unsigned>(std::bit_width(std::max({shape.Width, shape.Height, depth})));
}

CUDA_ARRAY3D_DESCRIPTOR shape_of_level(const CUDA_ARRAY3D_DESCRIPTOR &shape, unsigned level) {
  const auto halved = [level](std::size_t extent) {
    return extent == 0 ? 0 : std::max<std::size_t>(extent >> level, 1);
  };
  CUDA_ARRAY3D_DESCRIPTOR of_level = shape;
  of_level.Width = halved(shape.Width);
  of_level.Height = halved(shape.Height);
  if (!layered(shape)) of_level.Depth = halved(shape.Depth);
  return of_level;
}

void lay_out(ArrayMemory &memory, unsigned levels) {
  const Format &format = *find_format(memory.shape.Format);
  std::uint64_t end = 0;
  for (unsigned level = 0; level < levels; ++level) {
    memory.parts.push_back(new_part(memory, shape_of_level(memory.shape, level), memory.mipmapped));
    if (format.planes == 1) place(*memory.parts.back(), format, &end);
  }
  for (unsigned i = 0; i < format.planes && format.planes > 1; ++i) {
    const FormatPlane &plane = format.plane[i];
    CUDA_ARRAY3D_DESCRIPTOR shape = memory.shape;
    shape.Width = round_up(shape.Width, plane.across) / plane.across;
    shape.Height = round_up(shape.Height, plane.down) / plane.down;
    shape.Format = format.plane_format;
    shape.NumChannels = plane.channels;
    memory.parts.push_back(new_part(memory, shape, true));
    place(*memory.parts.back(), *find_format(format.plane_format), &end);
  }
  memory.needed = round_up(end, kArrayGranuleBytes);
}

}  // namespace simcuda
