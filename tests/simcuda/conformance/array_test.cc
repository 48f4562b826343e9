// CUDA arrays: valid descriptors, device cost, lifetime.
#include <iostream>

#include "tests/simcuda/conformance/fixture.h"
#include "tests/simcuda/conformance/shape.h"

namespace simcuda::conformance {
namespace {

constexpr std::size_t kKiB = 1024;

// The cost on a device that stores tiles of 64 bytes by 8 rows, in whole 64 KiB.
std::size_t in_tiles(std::size_t row_bytes, std::size_t rows, std::size_t slices) {
  const auto up = [](std::size_t value, std::size_t granule) { return (value + granule - 1) / granule * granule; };
  return up(up(row_bytes, 64) * up(rows, 8) * slices, 64 * kKiB);
}

std::size_t cost_of(const CUDA_ARRAY3D_DESCRIPTOR &shape) {
  const std::size_t before = free_bytes();
  const CUarray array = new_array(shape);
  const std::size_t after = free_bytes();
  REQUIRE(cuArrayDestroy(array) == CUDA_SUCCESS);
  REQUIRE(free_bytes() == before);
  return before - after;
}

TEST_CASE("an array costs the device its tiles, and nothing once it is destroyed") {
  if (!simulator()) return;
  const CurrentContext context;
  CHECK(cost_of(shape(1000)) == in_tiles(4000, 1, 1));
  CHECK(cost_of(shape(1024, 1024)) == 4 * kMiB);
  CHECK(cost_of(shape(1000, 1001)) == in_tiles(4000, 1001, 1));
  CHECK(cost_of(shape(100, 100, 33)) == in_tiles(400, 100, 33));
  CHECK(cost_of(shape(300, 0, 70, CUDA_ARRAY3D_LAYERED)) == in_tiles(1200, 1, 70));
  CHECK(cost_of(shape(300, 100, 70, CUDA_ARRAY3D_LAYERED)) == in_tiles(1200, 100, 70));
  CHECK(cost_of(shape(300, 300, 6, CUDA_ARRAY3D_CUBEMAP)) == in_tiles(1200, 300, 6));
  CHECK(cost_of(shape(300, 300, 12, CUDA_ARRAY3D_CUBEMAP | CUDA_ARRAY3D_LAYERED)) == in_tiles(1200, 300, 12));
  simcuda_books books = {};
  const CUarray staying = new_array(shape(1024, 1024));
  REQUIRE(simulator().device_books(0, &books) == 0);
  CHECK(books.arrays == 1);
  CHECK(books.array_bytes == 4 * kMiB);
  CHECK(cuArrayDestroy(staying) == CUDA_SUCCESS);
}

struct FormatCost {
  CUarray_format format;
  unsigned channels;
  std::size_t bits;  // of an element, in all planes together
};
constexpr FormatCost kFormats[] = {
    {CU_AD_FORMAT_UNSIGNED_INT8, 1, 8},
    {CU_AD_FORMAT_UNSIGNED_INT16, 2, 32},
    {CU_AD_FORMAT_UNSIGNED_INT32, 4, 128},
    {CU_AD_FORMAT_SIGNED_INT8, 4, 32},
    {CU_AD_FORMAT_SIGNED_INT16, 1, 16},
    {CU_AD_FORMAT_SIGNED_INT32, 2, 64},
    {CU_AD_FORMAT_HALF, 4, 64},
    {CU_AD_FORMAT_FLOAT, 1, 32},
    {CU_AD_FORMAT_NV12, 3, 12},
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
    {CU_AD_FORMAT_UNORM_INT_101010_2, 4, 32},
};

TEST_CASE("every format costs its bits, and accepts only its channel counts") {
  if (!simulator()) return;
  const CurrentContext context;
  for (const FormatCost &one : kFormats) {
    INFO("format " << one.format);
    CUDA_ARRAY3D_DESCRIPTOR request = shape(1024, 1024);
    request.Format = one.format;
    request.NumChannels = one.channels;
    CHECK(cost_of(request) == one.bits * 128 * kKiB);
    request.NumChannels = 5;
    CUarray none = nullptr;
    CHECK(cuArray3DCreate(&none, &request) == CUDA_ERROR_INVALID_VALUE);
  }
  std::cout << "covered: " << std::size(kFormats) << " of " << RATION_ARRAY_FORMATS << " formats\n";
  CHECK(std::size(kFormats) == RATION_ARRAY_FORMATS);
}

TEST_CASE("an invalid array descriptor is refused and leaves the handle unchanged") {
  const CurrentContext context;
  const auto refused = [](CUDA_ARRAY3D_DESCRIPTOR request) {
    CUarray untouched = reinterpret_cast<CUarray>(&request);
    const CUresult result = cuArray3DCreate(&untouched, &request);
    CHECK(untouched == reinterpret_cast<CUarray>(&request));
    return result == CUDA_ERROR_INVALID_VALUE;
  };
  CHECK(refused(shape(0)));
  CHECK(refused(shape(0, 16)));
  CHECK(refused(shape(16, 0, 16)));
  CHECK(refused(shape(16, 0, 0, CUDA_ARRAY3D_LAYERED)));
  CHECK(refused(shape(16, 32, 6, CUDA_ARRAY3D_CUBEMAP)));
  CHECK(refused(shape(16, 16, 12, CUDA_ARRAY3D_CUBEMAP)));
  CHECK(refused(shape(16, 16, 7, CUDA_ARRAY3D_CUBEMAP | CUDA_ARRAY3D_LAYERED)));
  CHECK(refused(shape(16, 16, 16, CUDA_ARRAY3D_TEXTURE_GATHER)));
  CUDA_ARRAY3D_DESCRIPTOR odd = shape(16, 16);
  odd.NumChannels = 3;
  CHECK(refused(odd));
  odd = shape(16, 16);
  odd.Format = static_cast<CUarray_format>(0x7f);
  CHECK(refused(odd));
  int widest = 0;
  REQUIRE(cuDeviceGetAttribute(&widest, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_WIDTH, 0) == CUDA_SUCCESS);
  CHECK(refused(shape(static_cast<std::size_t>(widest) + 1, 16)));
  CUarray array = nullptr;
  const CUDA_ARRAY3D_DESCRIPTOR right = shape(16);
  CHECK(cuArray3DCreate(nullptr, &right) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuArray3DCreate(&array, nullptr) == CUDA_ERROR_INVALID_VALUE);
  CHECK(array == nullptr);
}

TEST_CASE("a flag that no array has is no error") {
  const CurrentContext context;
  CUarray array = nullptr;
  const CUDA_ARRAY3D_DESCRIPTOR odd = shape(16, 16, 0, 0x80000000u);
  CHECK(cuArray3DCreate(&array, &odd) == CUDA_SUCCESS);  // H100, H200, driver 580.159
  CHECK(cuArrayDestroy(array) == CUDA_SUCCESS);
}

TEST_CASE("an array that does not fit the device is out of memory") {
  const CurrentContext context;
  const CUDA_ARRAY3D_DESCRIPTOR huge = shape(16384, 16384, 16384);
  CUarray untouched = reinterpret_cast<CUarray>(&untouched);
  CHECK(cuArray3DCreate(&untouched, &huge) == CUDA_ERROR_OUT_OF_MEMORY);
  CHECK(untouched == reinterpret_cast<CUarray>(&untouched));
}

TEST_CASE("an array returns its descriptor") {
  const CurrentContext context;
  const CUDA_ARRAY3D_DESCRIPTOR request = shape(40, 30, 20, CUDA_ARRAY3D_SURFACE_LDST);
  const CUarray deep = new_array(request);
  CUDA_ARRAY3D_DESCRIPTOR reported = {};
  REQUIRE(cuArray3DGetDescriptor(&reported, deep) == CUDA_SUCCESS);
  CHECK((reported.Width == 40 && reported.Height == 30 && reported.Depth == 20));
  CHECK((reported.Format == CU_AD_FORMAT_FLOAT && reported.NumChannels == 1));
  CHECK((reported.Flags & CUDA_ARRAY3D_SURFACE_LDST) != 0);
  const CUDA_ARRAY_DESCRIPTOR flat = {50, 60, CU_AD_FORMAT_HALF, 4};
  CUarray array = nullptr;
  REQUIRE(cuArrayCreate(&array, &flat) == CUDA_SUCCESS);
  CUDA_ARRAY_DESCRIPTOR back = {};
  REQUIRE(cuArrayGetDescriptor(&back, array) == CUDA_SUCCESS);
  CHECK((back.Width == 50 && back.Height == 60 && back.Format == CU_AD_FORMAT_HALF && back.NumChannels == 4));
  CHECK(cuArrayGetDescriptor(nullptr, array) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("a destroyed context destroys its arrays, and a destroyed array's handle is invalid") {
  if (!simulator()) return;
  const CurrentContext staying;
  const std::size_t before = free_bytes();
  CUarray stale = nullptr;
  {
    const CurrentContext going;
    stale = new_array(shape(1024, 1024));
    new_array(shape(1024, 1024, 3, CUDA_ARRAY3D_LAYERED));
  }
  REQUIRE(cuCtxSetCurrent(staying.get()) == CUDA_SUCCESS);
  CHECK(free_bytes() == before);
  CUDA_ARRAY3D_DESCRIPTOR reported = {};
  CHECK(cuArray3DGetDescriptor(&reported, stale) == CUDA_ERROR_INVALID_HANDLE);
  CHECK(cuArrayDestroy(stale) == CUDA_ERROR_INVALID_HANDLE);
  CHECK(cuArrayDestroy(nullptr) == CUDA_ERROR_INVALID_HANDLE);
}

TEST_CASE("the planes of an array are arrays of the same memory") {
  if (!simulator()) return;
  const CurrentContext context;
  CUDA_ARRAY3D_DESCRIPTOR request = shape(640, 480);
  request.Format = CU_AD_FORMAT_NV12;
  request.NumChannels = 3;
  const CUarray whole = new_array(request);
  const std::size_t free = free_bytes();
  CUarray luma = nullptr, chroma = nullptr;
  REQUIRE(cuArrayGetPlane(&luma, whole, 0) == CUDA_SUCCESS);
  REQUIRE(cuArrayGetPlane(&chroma, whole, 1) == CUDA_SUCCESS);
  CHECK(free_bytes() == free);
  CUDA_ARRAY_DESCRIPTOR reported = {};
  REQUIRE(cuArrayGetDescriptor(&reported, luma) == CUDA_SUCCESS);
  CHECK((reported.Width == 640 && reported.Height == 480 && reported.NumChannels == 1));
  CHECK(reported.Format == CU_AD_FORMAT_UNSIGNED_INT8);
  REQUIRE(cuArrayGetDescriptor(&reported, chroma) == CUDA_SUCCESS);
  CHECK((reported.Width == 320 && reported.Height == 240 && reported.NumChannels == 2));
  CUarray none = nullptr;
  CHECK(cuArrayGetPlane(&none, whole, 2) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuArrayGetPlane(&none, luma, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuArrayGetPlane(&none, new_array(shape(64, 64)), 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuArrayDestroy(luma) != CUDA_SUCCESS);
  CHECK(cuArrayDestroy(whole) == CUDA_SUCCESS);
  CHECK(cuArrayGetDescriptor(&reported, chroma) == CUDA_ERROR_INVALID_HANDLE);
}

TEST_CASE("an array whose memory is mapped later costs nothing") {
  if (!simulator()) return;
  const CurrentContext context;
  CHECK(cost_of(shape(1024, 1024, 0, CUDA_ARRAY3D_SPARSE)) == 0);
  CHECK(cost_of(shape(1024, 1024, 0, CUDA_ARRAY3D_DEFERRED_MAPPING)) == 0);
}

TEST_CASE("only an array of deferred mapping returns its memory requirements") {
  const CurrentContext context;
  CUDA_ARRAY_MEMORY_REQUIREMENTS needs = {};
  const CUarray plain = new_array(shape(1024, 1024));
  CHECK(cuArrayGetMemoryRequirements(&needs, plain, 0) == CUDA_ERROR_INVALID_VALUE);
  if (supports(CU_DEVICE_ATTRIBUTE_SPARSE_CUDA_ARRAY_SUPPORTED)) {
    const CUarray sparse = new_array(shape(1024, 1024, 0, CUDA_ARRAY3D_SPARSE));
    CHECK(cuArrayGetMemoryRequirements(&needs, sparse, 0) == CUDA_ERROR_INVALID_VALUE);
  }
  if (!supports(CU_DEVICE_ATTRIBUTE_DEFERRED_MAPPING_CUDA_ARRAY_SUPPORTED)) return;
  const CUarray deferred = new_array(shape(1024, 1024, 0, CUDA_ARRAY3D_DEFERRED_MAPPING));
  REQUIRE(cuArrayGetMemoryRequirements(&needs, deferred, 0) == CUDA_SUCCESS);
  CHECK(needs.size >= 4 * kMiB);
  CHECK(needs.alignment != 0);
  if (!simulator()) return;
  CHECK((needs.size == 4 * kMiB && needs.alignment == 64 * kKiB));
  CHECK(cuArrayGetMemoryRequirements(&needs, deferred, 99) == CUDA_ERROR_INVALID_DEVICE);
  CHECK(cuArrayGetMemoryRequirements(nullptr, deferred, 0) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("a sparse array is cut into tiles, or is a single tail") {
  if (!simulator()) return;
  const CurrentContext context;
  const CUarray plain = new_array(shape(1024, 1024));
  CUDA_ARRAY_SPARSE_PROPERTIES sparse = {};
  CHECK(cuArrayGetSparseProperties(&sparse, plain) == CUDA_ERROR_INVALID_VALUE);
  const CUarray large = new_array(shape(1024, 1024, 0, CUDA_ARRAY3D_SPARSE));
  REQUIRE(cuArrayGetSparseProperties(&sparse, large) == CUDA_SUCCESS);
  CHECK((sparse.tileExtent.width == 128 && sparse.tileExtent.height == 128 && sparse.tileExtent.depth == 1));
  CHECK((sparse.flags == 0 && sparse.miptailSize == 0));
  const CUarray small = new_array(shape(64, 64, 0, CUDA_ARRAY3D_SPARSE));
  REQUIRE(cuArrayGetSparseProperties(&sparse, small) == CUDA_SUCCESS);
  CHECK((sparse.flags == CU_ARRAY_SPARSE_PROPERTIES_SINGLE_MIPTAIL && sparse.miptailSize == 64 * kKiB));
}

}  // namespace
}  // namespace simcuda::conformance
