// Channel counts are the ones that cuda.h gives beside the format; where it gives none, planar and subsampled formats
// have three.
#include "tests/simcuda/array_format.h"

#include <algorithm>
#include <iterator>

namespace simcuda {
namespace {

constexpr CUarray_format k8 = CU_AD_FORMAT_UNSIGNED_INT8;
constexpr CUarray_format k16 = CU_AD_FORMAT_UNSIGNED_INT16;

constexpr Format kFormats[] = {
    {CU_AD_FORMAT_UNSIGNED_INT8, 0, 1},
    {CU_AD_FORMAT_UNSIGNED_INT16, 0, 2},
    {CU_AD_FORMAT_UNSIGNED_INT32, 0, 4},
    {CU_AD_FORMAT_SIGNED_INT8, 0, 1},
    {CU_AD_FORMAT_SIGNED_INT16, 0, 2},
    {CU_AD_FORMAT_SIGNED_INT32, 0, 4},
    {CU_AD_FORMAT_HALF, 0, 2},
    {CU_AD_FORMAT_FLOAT, 0, 4},
    {CU_AD_FORMAT_UNORM_INT8X1, 1, 1},
    {CU_AD_FORMAT_UNORM_INT8X2, 2, 2},
    {CU_AD_FORMAT_UNORM_INT8X4, 4, 4},
    {CU_AD_FORMAT_UNORM_INT16X1, 1, 2},
    {CU_AD_FORMAT_UNORM_INT16X2, 2, 4},
    {CU_AD_FORMAT_UNORM_INT16X4, 4, 8},
    {CU_AD_FORMAT_SNORM_INT8X1, 1, 1},
    {CU_AD_FORMAT_SNORM_INT8X2, 2, 2},
    {CU_AD_FORMAT_SNORM_INT8X4, 4, 4},
    {CU_AD_FORMAT_SNORM_INT16X1, 1, 2},
    {CU_AD_FORMAT_SNORM_INT16X2, 2, 4},
    {CU_AD_FORMAT_SNORM_INT16X4, 4, 8},
    {CU_AD_FORMAT_UNORM_INT_101010_2, 4, 4},
    {CU_AD_FORMAT_BC1_UNORM, 4, 8, 4},
    {CU_AD_FORMAT_BC1_UNORM_SRGB, 4, 8, 4},
    {CU_AD_FORMAT_BC2_UNORM, 4, 16, 4},
    {CU_AD_FORMAT_BC2_UNORM_SRGB, 4, 16, 4},
    {CU_AD_FORMAT_BC3_UNORM, 4, 16, 4},
    {CU_AD_FORMAT_BC3_UNORM_SRGB, 4, 16, 4},
    {CU_AD_FORMAT_BC4_UNORM, 1, 8, 4},
    {CU_AD_FORMAT_BC4_SNORM, 1, 8, 4},
    {CU_AD_FORMAT_BC5_UNORM, 2, 16, 4},
    {CU_AD_FORMAT_BC5_SNORM, 2, 16, 4},
    {CU_AD_FORMAT_BC6H_UF16, 3, 16, 4},
    {CU_AD_FORMAT_BC6H_SF16, 3, 16, 4},
    {CU_AD_FORMAT_BC7_UNORM, 4, 16, 4},
    {CU_AD_FORMAT_BC7_UNORM_SRGB, 4, 16, 4},
    {CU_AD_FORMAT_YUY2, 2, 2},
    {CU_AD_FORMAT_Y210, 2, 4},
    {CU_AD_FORMAT_Y216, 2, 4},
    {CU_AD_FORMAT_AYUV, 4, 4},
    {CU_AD_FORMAT_Y410, 4, 4},
    {CU_AD_FORMAT_Y416, 4, 8},
    {CU_AD_FORMAT_NV12, 3, 1, 1, k8, 2, {{1}, {2, 2, 2}}},
    {CU_AD_FORMAT_P010, 3, 2, 1, k16, 2, {{1}, {2, 2, 2}}},
    {CU_AD_FORMAT_P016, 3, 2, 1, k16, 2, {{1}, {2, 2, 2}}},
    {CU_AD_FORMAT_NV16, 3, 1, 1, k8, 2, {{1}, {2, 2, 1}}},
    {CU_AD_FORMAT_P210, 3, 2, 1, k16, 2, {{1}, {2, 2, 1}}},
    {CU_AD_FORMAT_P216, 3, 2, 1, k16, 2, {{1}, {2, 2, 1}}},
    {CU_AD_FORMAT_YUV444_8bit_SemiPlanar, 3, 1, 1, k8, 2, {{1}, {2}}},
    {CU_AD_FORMAT_YUV444_16bit_SemiPlanar, 3, 2, 1, k16, 2, {{1}, {2}}},
    {CU_AD_FORMAT_Y444_PLANAR8, 3, 1, 1, k8, 3, {{1}, {1}, {1}}},
    {CU_AD_FORMAT_Y444_PLANAR10, 3, 2, 1, k16, 3, {{1}, {1}, {1}}},
};

}  // namespace

const Format *find_format(CUarray_format format) {
  const auto *found = std::find_if(std::begin(kFormats), std::end(kFormats),
                                   [format](const Format &candidate) { return candidate.format == format; });
  return found == std::end(kFormats) ? nullptr : found;
}

}  // namespace simcuda
