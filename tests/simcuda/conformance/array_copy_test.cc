// Copies to and from arrays: rows, rectangles, boxes, and invalid ranges.
#include "tests/simcuda/conformance/fixture.h"
#include "tests/simcuda/conformance/shape.h"

namespace simcuda::conformance {
namespace {

TEST_CASE("a row copied into a 1D array comes back, through the host and on the device") {
  const CurrentContext context;
  const CUarray array = new_array(shape(256)), other = new_array(shape(256));
  const auto bytes = counting(1000);
  REQUIRE(cuMemcpyHtoA(array, 24, bytes.data(), 1000) == CUDA_SUCCESS);
  REQUIRE(cuMemcpyAtoA(other, 4, array, 24, 1000) == CUDA_SUCCESS);
  std::vector<unsigned char> back(1000);
  REQUIRE(cuMemcpyAtoH(back.data(), other, 4, 1000) == CUDA_SUCCESS);
  CHECK(back == bytes);
  const CUdeviceptr device = device_memory(1000);
  REQUIRE(cuMemcpyAtoD(device, array, 24, 1000) == CUDA_SUCCESS);
  CHECK(read_back(device, 1000) == bytes);
  REQUIRE(cuMemsetD8(device, 7, 1000) == CUDA_SUCCESS);
  REQUIRE(cuMemcpyDtoA(array, 24, device, 1000) == CUDA_SUCCESS);
  const CUstream stream = new_stream();
  REQUIRE(cuMemcpyAtoHAsync(back.data(), array, 24, 1000, stream) == CUDA_SUCCESS);
  REQUIRE(cuStreamSynchronize(stream) == CUDA_SUCCESS);
  CHECK(back == std::vector<unsigned char>(1000, 7));
  REQUIRE(cuMemcpyHtoAAsync(array, 24, bytes.data(), 1000, stream) == CUDA_SUCCESS);
  REQUIRE(cuStreamSynchronize(stream) == CUDA_SUCCESS);
  REQUIRE(cuMemcpyAtoH(back.data(), array, 24, 1000) == CUDA_SUCCESS);
  CHECK(back == bytes);
}

TEST_CASE("copies outside a 1D array, or without one, are refused") {
  const CurrentContext context;
  const CUarray array = new_array(shape(256));
  const auto bytes = counting(2000);
  CHECK(cuMemcpyHtoA(array, 0, bytes.data(), 1025) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemcpyHtoA(array, 1000, bytes.data(), 25) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemcpyHtoA(nullptr, 0, bytes.data(), 25) != CUDA_SUCCESS);
}

TEST_CASE("a rectangle copied into a 2D array comes back from its position") {
  const CurrentContext context;
  const CUarray array = new_array(shape(64, 32));
  const auto bytes = counting(100 * 20);
  CUDA_MEMCPY2D in = {}, out = {};
  in.srcMemoryType = CU_MEMORYTYPE_HOST;
  in.srcHost = bytes.data();
  in.srcPitch = 100;
  in.dstMemoryType = CU_MEMORYTYPE_ARRAY;
  in.dstArray = array;
  in.dstXInBytes = 8;
  in.dstY = 5;
  in.WidthInBytes = 100;
  in.Height = 20;
  REQUIRE(cuMemcpy2D(&in) == CUDA_SUCCESS);
  std::vector<unsigned char> back(40 * 10);
  out.srcMemoryType = CU_MEMORYTYPE_ARRAY;
  out.srcArray = array;
  out.srcXInBytes = 18;
  out.srcY = 7;
  out.dstMemoryType = CU_MEMORYTYPE_HOST;
  out.dstHost = back.data();
  out.dstPitch = 40;
  out.WidthInBytes = 40;
  out.Height = 10;
  REQUIRE(cuMemcpy2D(&out) == CUDA_SUCCESS);
  for (std::size_t row = 0; row < 10; ++row) {
    for (std::size_t x = 0; x < 40; ++x) REQUIRE(back[row * 40 + x] == bytes[(row + 2) * 100 + x + 10]);
  }
  in.dstY = 13;
  CHECK(cuMemcpy2D(&in) == CUDA_ERROR_INVALID_VALUE);
  in.dstY = 5;
  in.dstXInBytes = 160;
  CHECK(cuMemcpy2D(&in) == CUDA_ERROR_INVALID_VALUE);
}

CUDA_MEMCPY3D box_to_array(const std::vector<unsigned char> &bytes, CUarray array) {
  CUDA_MEMCPY3D copy = {};
  copy.srcMemoryType = CU_MEMORYTYPE_HOST;
  copy.srcHost = bytes.data();
  copy.srcPitch = 40;
  copy.srcHeight = 5;
  copy.dstMemoryType = CU_MEMORYTYPE_ARRAY;
  copy.dstArray = array;
  copy.WidthInBytes = 40;
  copy.Height = 5;
  copy.Depth = 3;
  return copy;
}

TEST_CASE("a box copied into a 3D array can be copied into device memory") {
  const CurrentContext context;
  const CUarray array = new_array(shape(16, 8, 4));
  const auto bytes = counting(40 * 5 * 3);
  CUDA_MEMCPY3D in = box_to_array(bytes, array), out = {};
  in.dstXInBytes = 4;
  in.dstY = 2;
  in.dstZ = 1;
  REQUIRE(cuMemcpy3D(&in) == CUDA_SUCCESS);
  const CUdeviceptr device = device_memory(64 * 6 * 3);
  REQUIRE(cuMemsetD8(device, 255, 64 * 6 * 3) == CUDA_SUCCESS);
  out.srcMemoryType = CU_MEMORYTYPE_ARRAY;
  out.srcArray = array;
  out.srcXInBytes = 4;
  out.srcY = 2;
  out.srcZ = 1;
  out.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  out.dstDevice = device;
  out.dstPitch = 64;
  out.dstHeight = 6;
  out.WidthInBytes = 40;
  out.Height = 5;
  out.Depth = 3;
  const CUstream stream = new_stream();
  REQUIRE(cuMemcpy3DAsync(&out, stream) == CUDA_SUCCESS);
  REQUIRE(cuStreamSynchronize(stream) == CUDA_SUCCESS);
  const auto back = read_back(device, 64 * 6 * 3);
  for (std::size_t z = 0; z < 3; ++z) {
    for (std::size_t y = 0; y < 5; ++y) {
      for (std::size_t x = 0; x < 40; ++x) REQUIRE(back[(z * 6 + y) * 64 + x] == bytes[(z * 5 + y) * 40 + x]);
      REQUIRE(back[(z * 6 + y) * 64 + 40] == 255);
    }
  }
  in.dstZ = 2;
  CHECK(cuMemcpy3D(&in) == CUDA_ERROR_INVALID_VALUE);
  in.dstZ = 0;
  in.srcLOD = 1;
  CHECK(cuMemcpy3D(&in) == CUDA_SUCCESS);  // H100, H200, driver 580.159: ignored, although cuda.h wants 0
  CHECK(cuMemcpy3D(nullptr) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("the levels of a mipmapped array do not overlap") {
  const CurrentContext context;
  const CUDA_ARRAY3D_DESCRIPTOR request = shape(16, 8, 4);
  CUmipmappedArray mipmapped = nullptr;
  REQUIRE(cuMipmappedArrayCreate(&mipmapped, &request, 2) == CUDA_SUCCESS);
  CUarray level[2] = {};
  for (unsigned i = 0; i < 2; ++i) REQUIRE(cuMipmappedArrayGetLevel(&level[i], mipmapped, i) == CUDA_SUCCESS);
  const auto first = counting(40 * 5 * 3), second = counting(16, 200);
  const CUDA_MEMCPY3D in = box_to_array(first, level[0]);
  REQUIRE(cuMemcpy3D(&in) == CUDA_SUCCESS);
  CUDA_MEMCPY3D row = box_to_array(second, level[1]);
  row.WidthInBytes = 16;
  row.Height = row.Depth = 1;
  REQUIRE(cuMemcpy3D(&row) == CUDA_SUCCESS);
  std::vector<unsigned char> back(40);
  CUDA_MEMCPY2D out = {};
  out.srcMemoryType = CU_MEMORYTYPE_ARRAY;
  out.srcArray = level[0];
  out.dstMemoryType = CU_MEMORYTYPE_HOST;
  out.dstHost = back.data();
  out.WidthInBytes = 40;
  out.Height = 1;
  REQUIRE(cuMemcpy2D(&out) == CUDA_SUCCESS);
  CHECK(back == std::vector<unsigned char>(first.begin(), first.begin() + 40));
}

}  // namespace
}  // namespace simcuda::conformance
