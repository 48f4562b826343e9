// Copies and fills change the right bytes and nothing else.
#include <cstring>

#include "tests/simcuda/conformance/fixture.h"

namespace simcuda::conformance {
namespace {

TEST_CASE("bytes come back unchanged, at every size and offset") {
  const CurrentContext context;
  const CUdeviceptr device = device_memory(4 * kMiB);
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{7}, std::size_t{4096}, std::size_t{65537}, 2 * kMiB}) {
    for (const std::size_t offset : {std::size_t{0}, std::size_t{1}, std::size_t{513}, kMiB}) {
      const auto sent = counting(bytes, static_cast<unsigned char>(bytes + offset));
      REQUIRE(cuMemcpyHtoD(device + offset, sent.data(), bytes) == CUDA_SUCCESS);
      REQUIRE(read_back(device + offset, bytes) == sent);
    }
  }
}

TEST_CASE("a copy touches nothing outside its range") {
  const CurrentContext context;
  const CUdeviceptr device = device_memory(4096);
  REQUIRE(cuMemsetD8(device, 0xAA, 4096) == CUDA_SUCCESS);
  const auto sent = counting(100);
  REQUIRE(cuMemcpyHtoD(device + 1000, sent.data(), sent.size()) == CUDA_SUCCESS);
  auto expected = std::vector<unsigned char>(4096, 0xAA);
  std::copy(sent.begin(), sent.end(), expected.begin() + 1000);
  CHECK(read_back(device, 4096) == expected);
}

TEST_CASE("copies between allocations of any two kinds arrive") {
  const CurrentContext context;
  const auto sent = counting(3 * kMiB);
  const CUdeviceptr first = device_memory(sent.size()), second = device_memory(sent.size());
  std::vector<unsigned char> received(sent.size());
  REQUIRE(cuMemcpy(first, reinterpret_cast<CUdeviceptr>(sent.data()), sent.size()) == CUDA_SUCCESS);
  REQUIRE(cuMemcpyDtoD(second, first, sent.size()) == CUDA_SUCCESS);
  REQUIRE(cuMemcpy(reinterpret_cast<CUdeviceptr>(received.data()), second, sent.size()) == CUDA_SUCCESS);
  CHECK(received == sent);
}

TEST_CASE("a copy past an allocation, or of no allocation, is an invalid value") {
  const CurrentContext context;
  const CUdeviceptr device = device_memory(512);
  std::vector<unsigned char> host(4096);
  CHECK(cuMemcpyHtoD(device, host.data(), 0) == CUDA_SUCCESS);
  CHECK(cuMemcpyHtoD(device + 1, host.data(), 512) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemcpyDtoH(host.data(), device + 512, 1) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemcpyHtoD(0, host.data(), 1) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemsetD8(device, 0, 513) == CUDA_ERROR_INVALID_VALUE);
  REQUIRE(cuMemFree(device) == CUDA_SUCCESS);
  CHECK(cuMemcpyDtoH(host.data(), device, 1) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("an asynchronous copy has read its pageable source when it returns") {
  const CurrentContext context;
  for (const std::size_t bytes : {std::size_t{1000}, kMiB}) {
    const CUdeviceptr device = device_memory(bytes);
    const CUstream stream = new_stream();
    auto source = counting(bytes);
    const auto sent = source;
    Gate gate;
    if (bytes <= 4096) gate.hold(stream);  // so few bytes are staged: the call must not wait for the stream
    REQUIRE(cuMemcpyHtoDAsync(device, source.data(), bytes, stream) == CUDA_SUCCESS);
    std::fill(source.begin(), source.end(), static_cast<unsigned char>(0));
    gate.open();
    REQUIRE(cuStreamSynchronize(stream) == CUDA_SUCCESS);
    CHECK(read_back(device, bytes) == sent);
  }
}

TEST_CASE("an asynchronous copy to pinned memory is complete when its stream is") {
  const CurrentContext context;
  const auto sent = counting(kMiB);
  const CUdeviceptr device = device_memory(kMiB);
  const CUstream stream = new_stream(CU_STREAM_NON_BLOCKING);
  void *pinned = nullptr;
  REQUIRE(cuMemAllocHost(&pinned, kMiB) == CUDA_SUCCESS);
  std::memcpy(pinned, sent.data(), kMiB);
  REQUIRE(cuMemcpyHtoDAsync(device, pinned, kMiB, stream) == CUDA_SUCCESS);
  REQUIRE(cuMemsetD8Async(device, 0, 10, stream) == CUDA_SUCCESS);
  REQUIRE(cuMemcpyDtoHAsync(pinned, device, kMiB, stream) == CUDA_SUCCESS);
  REQUIRE(cuStreamSynchronize(stream) == CUDA_SUCCESS);
  auto expected = sent;
  std::fill_n(expected.begin(), 10, static_cast<unsigned char>(0));
  CHECK(std::memcmp(pinned, expected.data(), kMiB) == 0);
}

TEST_CASE("fills write elements of every width, and only the requested number") {
  const CurrentContext context;
  const CUdeviceptr device = device_memory(64);
  REQUIRE(cuMemsetD8(device, 0x11, 64) == CUDA_SUCCESS);
  REQUIRE(cuMemsetD16(device + 2, 0x2223, 3) == CUDA_SUCCESS);
  REQUIRE(cuMemsetD32(device + 16, 0x44454647, 2) == CUDA_SUCCESS);
  std::vector<unsigned char> expected(64, 0x11);
  for (const int at : {2, 4, 6}) {
    expected[static_cast<std::size_t>(at)] = 0x23;
    expected[static_cast<std::size_t>(at) + 1] = 0x22;
  }
  for (const std::size_t at : {16u, 20u}) {
    for (std::size_t i = 0; i < 4; ++i) expected[at + i] = static_cast<unsigned char>(0x47 - i);
  }
  CHECK(read_back(device, 64) == expected);
  CHECK(cuMemsetD16(device + 1, 0, 1) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemsetD32(device + 2, 0, 1) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("fills and copies of a rectangle leave the bytes between rows unchanged") {
  const CurrentContext context;
  constexpr std::size_t kPitch = 64, kRows = 5;
  const CUdeviceptr device = device_memory(kPitch * kRows);
  REQUIRE(cuMemsetD8(device, 1, kPitch * kRows) == CUDA_SUCCESS);
  REQUIRE(cuMemsetD2D8(device, kPitch, 2, 10, kRows) == CUDA_SUCCESS);
  const auto whole = read_back(device, kPitch * kRows);
  for (std::size_t i = 0; i < whole.size(); ++i) REQUIRE(whole[i] == (i % kPitch < 10 ? 2 : 1));

  std::vector<unsigned char> host(20 * kRows, 9);
  CUDA_MEMCPY2D copy = {};
  copy.srcMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.srcDevice = device;
  copy.srcPitch = kPitch;
  copy.srcXInBytes = 6;
  copy.dstMemoryType = CU_MEMORYTYPE_HOST;
  copy.dstHost = host.data();
  copy.dstPitch = 20;
  copy.WidthInBytes = 8;
  copy.Height = kRows;
  REQUIRE(cuMemcpy2D(&copy) == CUDA_SUCCESS);
  for (std::size_t i = 0; i < host.size(); ++i) {
    const std::size_t x = i % 20;
    REQUIRE(host[i] == (x < 4 ? 2 : x < 8 ? 1 : 9));
  }
  copy.Height = kRows + 1;  // past the allocation
  CHECK(cuMemcpy2D(&copy) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("a copy between two devices arrives") {
  start_driver();
  int count = 0;
  REQUIRE(cuDeviceGetCount(&count) == CUDA_SUCCESS);
  if (count < 2) return;
  const auto sent = counting(kMiB);
  const CurrentContext first(0);
  const CUdeviceptr here = device_memory(kMiB);
  REQUIRE(cuMemcpyHtoD(here, sent.data(), kMiB) == CUDA_SUCCESS);
  const CurrentContext second(1);
  const CUdeviceptr there = device_memory(kMiB);
  REQUIRE(cuMemcpyPeer(there, second.get(), here, first.get(), kMiB) == CUDA_SUCCESS);
  CHECK(read_back(there, kMiB) == sent);
}

}  // namespace
}  // namespace simcuda::conformance
