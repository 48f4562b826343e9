// DMA-BUFs of device memory. What a device answered is in tests/gpu/results; that memory stays until its descriptor is
// closed is from the driver's published kernel module.
#include <unistd.h>

#include "tests/simcuda/conformance/vmm.h"

namespace simcuda::conformance {
namespace {

constexpr std::size_t kPage = 4096;
constexpr int kNone = -1;

CUresult exported(int *file, CUdeviceptr address, std::size_t bytes, unsigned long long flags = 0) {
  *file = kNone;
  return cuMemGetHandleForAddressRange(file, address, bytes, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, flags);
}

// INVALID_VALUE and no descriptor.
bool is_refused(CUdeviceptr address, std::size_t bytes) {
  int file = kNone;
  return exported(&file, address, bytes) == CUDA_ERROR_INVALID_VALUE && file == kNone;
}

void export_and_close(CUdeviceptr address, std::size_t bytes) {
  int file = kNone;
  REQUIRE(exported(&file, address, bytes) == CUDA_SUCCESS);
  REQUIRE(file >= 0);
  CHECK(::lseek(file, 0, SEEK_END) == static_cast<off_t>(bytes));
  CHECK(::close(file) == 0);
}

bool has_dma_bufs() {
  start_driver();
  return supports(CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED);
}

TEST_CASE("a block and any pages of it have DMA-BUFs") {
  const CurrentContext context;
  if (!has_dma_bufs()) return;
  const CUdeviceptr block = device_memory(4 * kMiB);
  export_and_close(block, 4 * kMiB);
  export_and_close(block + kMiB + kPage, 3 * kPage);
  CHECK(cuMemFree(block) == CUDA_SUCCESS);
}

TEST_CASE("mapped memory has DMA-BUFs across handles") {
  const CurrentContext context;
  if (!has_dma_bufs()) return;
  const MappedRange range(3);
  export_and_close(range.address(), range.bytes());
  export_and_close(range.address() + kGranule - kPage, 2 * kPage);
}

TEST_CASE("stream-ordered memory has DMA-BUFs of whole pages of 2 MiB") {
  const CurrentContext context;
  if (!has_dma_bufs() || !supports(CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED)) return;
  CUdeviceptr block = 0;
  REQUIRE(cuMemAllocAsync(&block, 4 * kGranule, nullptr) == CUDA_SUCCESS);
  REQUIRE(cuStreamSynchronize(nullptr) == CUDA_SUCCESS);
  export_and_close(block, 4 * kGranule);
  export_and_close(block, kGranule);
  CHECK(is_refused(block + kGranule - 16 * kPage, 32 * kPage));
  CHECK(cuMemFree(block) == CUDA_SUCCESS);
  CHECK(cuCtxSynchronize() == CUDA_SUCCESS);  // the pool gives its memory back
}

TEST_CASE("a range that is no whole pages, or not all memory, has no DMA-BUF") {
  const CurrentContext context;
  if (!has_dma_bufs()) return;
  const CUdeviceptr block = device_memory(kMiB);
  CHECK(is_refused(block + 512, kPage));
  CHECK(is_refused(block, kPage + 512));
  CHECK(is_refused(block, 0));
  REQUIRE(cuMemFree(block) == CUDA_SUCCESS);
  CHECK(is_refused(block, kMiB));
  const CUdeviceptr range = reserved(2 * kGranule);
  const CUmemGenericAllocationHandle handle = physical(kGranule);
  REQUIRE(cuMemMap(range, kGranule, 0, handle, 0) == CUDA_SUCCESS);
  CHECK(is_refused(range, 2 * kGranule));
  CHECK(is_refused(range + kGranule, kGranule));
  export_and_close(range, kGranule);
  CHECK(cuMemUnmap(range, kGranule) == CUDA_SUCCESS);
  CHECK(cuMemRelease(handle) == CUDA_SUCCESS);
  CHECK(cuMemAddressFree(range, 2 * kGranule) == CUDA_SUCCESS);
}

TEST_CASE("a DMA-BUF of another type, or without a place for it, is an invalid value") {
  const CurrentContext context;
  if (!has_dma_bufs()) return;
  const CUdeviceptr block = device_memory(kMiB);
  int file = kNone;
  CHECK(cuMemGetHandleForAddressRange(nullptr, block, kMiB, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0) ==
        CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemGetHandleForAddressRange(&file, block, kMiB, CU_MEM_RANGE_HANDLE_TYPE_MAX, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(file == kNone);
  CHECK(cuMemFree(block) == CUDA_SUCCESS);
}

TEST_CASE("memory is not given back while a DMA-BUF of it is open") {
  if (!simulator()) return;  // on a device others allocate, too
  const CurrentContext context;
  const std::size_t before = free_bytes();
  int first = kNone, second = kNone, mapped = kNone;
  const CUdeviceptr block = device_memory(4 * kMiB);
  REQUIRE(exported(&first, block, 4 * kMiB) == CUDA_SUCCESS);
  REQUIRE(exported(&second, block, kPage) == CUDA_SUCCESS);
  REQUIRE(cuMemFree(block) == CUDA_SUCCESS);
  {
    const MappedRange range(2);
    REQUIRE(exported(&mapped, range.address() + kGranule, kGranule) == CUDA_SUCCESS);
  }
  CHECK(free_bytes() == before - 4 * kMiB - kGranule);
  CHECK(::close(first) == 0);
  CHECK(free_bytes() == before - 4 * kMiB - kGranule);
  CHECK(::close(second) == 0);
  CHECK(free_bytes() == before - kGranule);
  CHECK(::close(mapped) == 0);
  CHECK(free_bytes() == before);
}

}  // namespace
}  // namespace simcuda::conformance
