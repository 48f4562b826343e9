// What an array costs at most, against a rule written down a second time: tiles of 64 bytes by 8 rows, in whole 64 KiB.
#include "policy/physical/array_bytes.h"

#include <algorithm>
#include <cstdint>
#include <iostream>
#include <iterator>
#include <random>

#include "catch.h"

namespace ration::policy {
namespace {

constexpr std::uint64_t kKiB = 1024, kMiB = 1024 * kKiB;

CUDA_ARRAY3D_DESCRIPTOR floats(std::size_t width, std::size_t height = 0, std::size_t depth = 0, unsigned flags = 0) {
  return {width, height, depth, CU_AD_FORMAT_FLOAT, 1, flags};
}

std::uint64_t up(std::uint64_t value, std::uint64_t unit) {
  return (value + unit - 1) / unit * unit;
}

// What the smallest tiles take, of 4-byte channels.
std::uint64_t in_gobs(const CUDA_ARRAY3D_DESCRIPTOR &shape, unsigned levels) {
  const bool layered = (shape.Flags & CUDA_ARRAY3D_LAYERED) != 0;
  std::uint64_t bytes = 0;
  for (unsigned level = 0; level < levels; ++level) {
    const auto side = [level](std::size_t extent) { return std::max<std::uint64_t>(extent >> level, 1); };
    const std::uint64_t slices = layered ? shape.Depth : side(shape.Depth);
    bytes += up(side(shape.Width) * 4 * shape.NumChannels, 64) * up(side(shape.Height), 8) * slices;
    if (side(shape.Width) == 1 && side(shape.Height) == 1 && (layered || side(shape.Depth) == 1)) break;
  }
  return up(bytes, 64 * kKiB);
}

struct FormatBits {
  CUarray_format format;
  unsigned channels;
  std::uint64_t bits;  // an element's, in all planes together
};
constexpr FormatBits kFormats[] = {
    {CU_AD_FORMAT_UNSIGNED_INT8, 4, 32},
    {CU_AD_FORMAT_UNSIGNED_INT16, 1, 16},
    {CU_AD_FORMAT_UNSIGNED_INT32, 2, 64},
    {CU_AD_FORMAT_SIGNED_INT8, 1, 8},
    {CU_AD_FORMAT_SIGNED_INT16, 4, 64},
    {CU_AD_FORMAT_SIGNED_INT32, 1, 32},
    {CU_AD_FORMAT_HALF, 2, 32},
    {CU_AD_FORMAT_FLOAT, 4, 128},
    {CU_AD_FORMAT_UNORM_INT8X1, 1, 8},
    {CU_AD_FORMAT_UNORM_INT8X2, 2, 16},
    {CU_AD_FORMAT_UNORM_INT8X4, 4, 32},
    {CU_AD_FORMAT_UNORM_INT16X1, 1, 16},
    {CU_AD_FORMAT_UNORM_INT16X2, 2, 32},
    {CU_AD_FORMAT_UNORM_INT16X4, 4, 64},
    {CU_AD_FORMAT_SNORM_INT8X1, 1, 8},
    {CU_AD_FORMAT_SNORM_INT8X2, 2, 16},
    {CU_AD_FORMAT_SNORM_INT8X4, 4, 32},
    {CU_AD_FORMAT_SNORM_INT16X1, 1, 16},
    {CU_AD_FORMAT_SNORM_INT16X2, 2, 32},
    {CU_AD_FORMAT_SNORM_INT16X4, 4, 64},
    {CU_AD_FORMAT_UNORM_INT_101010_2, 4, 32},
    {CU_AD_FORMAT_BC1_UNORM, 4, 4},
    {CU_AD_FORMAT_BC1_UNORM_SRGB, 4, 4},
    {CU_AD_FORMAT_BC2_UNORM, 4, 8},
    {CU_AD_FORMAT_BC2_UNORM_SRGB, 4, 8},
    {CU_AD_FORMAT_BC3_UNORM, 4, 8},
    {CU_AD_FORMAT_BC3_UNORM_SRGB, 4, 8},
    {CU_AD_FORMAT_BC4_UNORM, 1, 4},
    {CU_AD_FORMAT_BC4_SNORM, 1, 4},
    {CU_AD_FORMAT_BC5_UNORM, 2, 8},
    {CU_AD_FORMAT_BC5_SNORM, 2, 8},
    {CU_AD_FORMAT_BC6H_UF16, 3, 8},
    {CU_AD_FORMAT_BC6H_SF16, 3, 8},
    {CU_AD_FORMAT_BC7_UNORM, 4, 8},
    {CU_AD_FORMAT_BC7_UNORM_SRGB, 4, 8},
    {CU_AD_FORMAT_NV12, 3, 12},
    {CU_AD_FORMAT_P010, 3, 24},
    {CU_AD_FORMAT_P016, 3, 24},
    {CU_AD_FORMAT_NV16, 3, 16},
    {CU_AD_FORMAT_P210, 3, 32},
    {CU_AD_FORMAT_P216, 3, 32},
    {CU_AD_FORMAT_YUY2, 2, 16},
    {CU_AD_FORMAT_Y210, 2, 32},
    {CU_AD_FORMAT_Y216, 2, 32},
    {CU_AD_FORMAT_AYUV, 4, 32},
    {CU_AD_FORMAT_Y410, 4, 32},
    {CU_AD_FORMAT_Y416, 4, 64},
    {CU_AD_FORMAT_Y444_PLANAR8, 3, 24},
    {CU_AD_FORMAT_Y444_PLANAR10, 3, 48},
    {CU_AD_FORMAT_YUV444_8bit_SemiPlanar, 3, 24},
    {CU_AD_FORMAT_YUV444_16bit_SemiPlanar, 3, 48},
};

TEST_CASE("an array that fills its blocks costs the bits of its format, for every format") {
  for (const FormatBits &one : kFormats) {
    INFO("format " << one.format);
    CHECK(array_bytes({2048, 2048, 0, one.format, one.channels, 0}) == one.bits * 512 * kKiB);
    CHECK(least_array_bytes({2048, 2048, 0, one.format, one.channels, 0}) == one.bits * 512 * kKiB);
    CHECK(array_bytes({2048, 2048, 6, one.format, one.channels, CUDA_ARRAY3D_CUBEMAP}) == 6 * one.bits * 512 * kKiB);
  }
  std::cout << "covered: " << std::size(kFormats) << " of " << RATION_ARRAY_FORMATS << " formats\n";
  CHECK(std::size(kFormats) == RATION_ARRAY_FORMATS);
}

TEST_CASE("a format that nobody knows counts sixteen bytes an element") {
  CHECK(array_bytes({2048, 2048, 0, static_cast<CUarray_format>(0x7f), 1, 0}) == 64 * kMiB);
  CHECK(array_bytes({2048, 2048, 0, CU_AD_FORMAT_MAX, 4, 0}) == 64 * kMiB);
  CHECK(least_array_bytes({2048, 2048, 0, CU_AD_FORMAT_MAX, 4, 0}) == 4 * kMiB);
  CHECK(least_array_bytes(floats(4096, 4096, 0, CUDA_ARRAY3D_SPARSE)) == 0);
}

TEST_CASE("an array whose memory is mapped later costs nothing") {
  CHECK(array_bytes(floats(4096, 4096, 0, CUDA_ARRAY3D_SPARSE)) == 0);
  CHECK(array_bytes(floats(4096, 4096, 0, CUDA_ARRAY3D_DEFERRED_MAPPING)) == 0);
  CHECK(array_bytes(floats(4096, 4096, 8, CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_LAYERED), 5) == 0);
}

TEST_CASE("extents are padded to tiles, and an extent of nothing counts as one") {
  CHECK(array_bytes(floats(1)) == 64 * kKiB);
  CHECK(least_array_bytes(floats(131072)) == 131072 * 4);
  CHECK(array_bytes(floats(131072)) == 131072 * 4 * 8);   // a row is stored as eight
  CHECK(array_bytes(floats(1000, 1001)) == 4032 * 1024);  // 1001 rows in blocks of 256
  CHECK(array_bytes(floats(1024, 1024, 1)) == 4 * kMiB);
  CHECK(array_bytes(floats(1024, 1024, 3)) == 16 * kMiB);                              // three deep in a block of four
  CHECK(array_bytes(floats(1024, 1024, 3, CUDA_ARRAY3D_LAYERED)) == 12 * kMiB);        // layers are apart
  CHECK(array_bytes(floats(1024, 257, 33)) == 2 * in_gobs(floats(1024, 257, 33), 1));  // both just above a block
}

TEST_CASE("levels add up, as many as the extent has") {
  const std::uint64_t base = 1024 * 1024 * 4;
  CHECK(array_bytes(floats(1024, 1024), 1) == base);
  CHECK(array_bytes(floats(1024, 1024), 0) == base);
  CHECK(array_bytes(floats(1024, 1024), 2) == base + base / 4);
  const std::uint64_t all = array_bytes(floats(1024, 1024), 11);
  CHECK(all > base + base / 4 + base / 16);
  CHECK(all < base + base / 2);
  CHECK(array_bytes(floats(1024, 1024), 4'000'000'000u) == all);
  CHECK(array_bytes(floats(1024, 1024, 64, CUDA_ARRAY3D_LAYERED), 2) == 64 * (base + base / 4));
  CHECK(array_bytes(floats(1024, 1024, 64), 2) == 64 * base + 32 * base / 4);
}

TEST_CASE("what 64 bits do not hold is the most that they do") {
  const std::size_t huge = SIZE_MAX;
  CHECK(array_bytes(floats(huge)) == UINT64_MAX);
  CHECK(array_bytes(floats(huge, huge, huge)) == UINT64_MAX);
  CHECK(array_bytes(floats(huge / 2, huge / 2), 64) == UINT64_MAX);
  CHECK(array_bytes(floats(1 << 20, huge, huge, CUDA_ARRAY3D_LAYERED)) == UINT64_MAX);
  CHECK(array_bytes({huge, huge, huge, CU_AD_FORMAT_NV12, UINT32_MAX, 0}, UINT32_MAX) == UINT64_MAX);
  CHECK(array_bytes({16, 16, 16, CU_AD_FORMAT_FLOAT, UINT32_MAX, 0}) < kMiB);  // the driver refuses it
}

TEST_CASE("no array costs less than its smallest tiles, nor more than twice that") {
  const std::uint64_t seed = std::random_device{}();
  INFO("seed " << seed);
  std::mt19937_64 random(seed);
  const auto up_to = [&](std::uint64_t most) { return static_cast<std::size_t>(random() % most); };
  for (int i = 0; i < 20'000; ++i) {
    const std::size_t most = std::size_t{1} << (1 + up_to(12));
    CUDA_ARRAY3D_DESCRIPTOR shape = floats(1 + up_to(most), up_to(most), up_to(2) * up_to(most));
    if (shape.Height == 0) shape.Depth = 0;
    if (up_to(3) == 0 && shape.Depth != 0) shape.Flags = CUDA_ARRAY3D_LAYERED;
    shape.NumChannels = 1u << up_to(3);
    const unsigned levels = 1 + static_cast<unsigned>(up_to(14));
    const std::uint64_t least = in_gobs(shape, levels);
    const std::uint64_t bound = array_bytes(shape, levels);
    CAPTURE(shape.Width, shape.Height, shape.Depth, shape.Flags, shape.NumChannels, levels);
    REQUIRE(bound >= least);
    REQUIRE(bound <= 2 * least);
  }
}

}  // namespace
}  // namespace ration::policy
