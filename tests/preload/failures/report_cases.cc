// What users reported of allocators, pools and memory figures: requests of what is free, sizes that overflow, addresses
// that are used again, other devices, physical memory that several holders keep.
#include <stdint.h>

#include <set>
#include <vector>

#include "cases.h"

namespace failures {
namespace {

constexpr size_t kHuge[] = {SIZE_MAX,         SIZE_MAX - 1, SIZE_MAX - 511, SIZE_MAX - 2 * kMiB + 1,
                            SIZE_MAX / 2 + 1, SIZE_MAX / 2};

// What is free, in whole units of the driver, can be had as one block.
void have_what_is_free() {
  const size_t free_bytes = memory().free / kGranule * kGranule;
  CUdeviceptr address = kBefore;
  INFO("free " << free_bytes);
  REQUIRE(cuMemAlloc_v2(&address, free_bytes) == CUDA_SUCCESS);
  REQUIRE(memory().free < kGranule);
  REQUIRE(cuMemFree_v2(address) == CUDA_SUCCESS);
}

TEST_CASE("what is reported as free can be allocated as one block, whatever was freed before", "[reports]") {
  enter();
  have_what_is_free();
  std::vector<CUdeviceptr> blocks;
  for (const size_t bytes : {size_t{1}, 300 * kMiB, 5 * kMiB + 1, size_t{513}, 77 * kMiB}) {
    blocks.push_back(take(bytes));
  }
  REQUIRE(cuMemFree_v2(blocks[1]) == CUDA_SUCCESS);
  for (const size_t index : {0U, 2U, 3U, 4U}) {
    REQUIRE(cuMemFree_v2(blocks[index]) == CUDA_SUCCESS);
  }
  have_what_is_free();
}

TEST_CASE("a second block of half of the memory fits, and so do ever larger ones in turn", "[reports]") {
  enter();
  const size_t half = kLimit / 2 - kSlack;
  const CUdeviceptr first = take(half);
  const CUdeviceptr second = take(half);
  REQUIRE(cuMemFree_v2(first) == CUDA_SUCCESS);
  REQUIRE(cuMemFree_v2(second) == CUDA_SUCCESS);
  for (size_t bytes = kMiB; bytes <= half; bytes += 37 * kMiB) {
    const CUdeviceptr one = take(bytes);
    const CUdeviceptr other = take(bytes);
    REQUIRE(held() <= kLimit);
    REQUIRE(cuMemFree_v2(one) == CUDA_SUCCESS);
    REQUIRE(cuMemFree_v2(other) == CUDA_SUCCESS);
  }
  all_is_free();
}

TEST_CASE("sizes near the end of the range are refused by every function and charge nothing", "[reports]") {
  enter();
  const Memory before = memory();
  for (const size_t bytes : kHuge) {
    INFO("bytes " << bytes);
    CUdeviceptr address = kBefore;
    CUmemGenericAllocationHandle handle = 0;
    size_t pitch = 0;
    void *pinned = nullptr;
    refused(bytes);
    REQUIRE(cuMemAllocManaged(&address, bytes, CU_MEM_ATTACH_GLOBAL) == CUDA_ERROR_OUT_OF_MEMORY);
    REQUIRE(cuMemAllocAsync(&address, bytes, nullptr) == CUDA_ERROR_OUT_OF_MEMORY);
    REQUIRE(cuMemAllocPitch_v2(&address, &pitch, bytes, 1, 4) != CUDA_SUCCESS);
    REQUIRE(cuMemAllocPitch_v2(&address, &pitch, 1, bytes, 4) != CUDA_SUCCESS);
    REQUIRE(cuMemAllocPitch_v2(&address, &pitch, size_t{1} << 33, size_t{1} << 33, 4) != CUDA_SUCCESS);
    REQUIRE(make_physical(&handle, bytes / (2 * kMiB) * (2 * kMiB), 0) != CUDA_SUCCESS);
    REQUIRE(cuMemHostAlloc(&pinned, bytes, 0) != CUDA_SUCCESS);
    CUDA_ARRAY3D_DESCRIPTOR shape{};
    shape.Width = shape.Height = shape.Depth = bytes;
    shape.Format = CU_AD_FORMAT_FLOAT;
    shape.NumChannels = 4;
    CUarray array = nullptr;
    REQUIRE(cuArray3DCreate_v2(&array, &shape) != CUDA_SUCCESS);
    REQUIRE(memory().free == before.free);
  }
  all_is_free();
}

TEST_CASE("no two blocks have the same identity, also at the same address", "[reports]") {
  enter();
  std::set<unsigned long long> seen;
  for (int round = 0; round < 200; ++round) {
    const CUdeviceptr block = take(round % 2 == 0 ? kMiB : 3 * kMiB);
    unsigned long long identity = 0;
    REQUIRE(cuPointerGetAttribute(&identity, CU_POINTER_ATTRIBUTE_BUFFER_ID, block) == CUDA_SUCCESS);
    REQUIRE(seen.insert(identity).second);
    REQUIRE(cuMemFree_v2(block) == CUDA_SUCCESS);
    REQUIRE(cuCtxSynchronize() == CUDA_SUCCESS);
  }
}

TEST_CASE("work on one device leaves nothing on another one", "[reports]") {
  enter(1);
  const CUdeviceptr block = take(100 * kMiB);
  CUdeviceptr streamed = 0;
  REQUIRE(cuMemAllocAsync(&streamed, kMiB, nullptr) == CUDA_SUCCESS);
  simcuda_books books{};
  REQUIRE(simcuda_device_books(0, &books) == 0);
  REQUIRE(books.contexts == 0);
  REQUIRE(held(0) == 0);
  unsigned flags = 0;
  int active = 1;
  REQUIRE(cuDevicePrimaryCtxGetState(0, &flags, &active) == CUDA_SUCCESS);
  REQUIRE(active == 0);
  REQUIRE(cuMemFreeAsync(streamed, nullptr) == CUDA_SUCCESS);
  REQUIRE(cuMemFree_v2(block) == CUDA_SUCCESS);
}

TEST_CASE("a free under another device's context belongs to the device of the block", "[reports]") {
  const CUcontext first = enter(0);
  const CUdeviceptr block = take(700 * kMiB);
  enter(1);
  const CUdeviceptr other = take(300 * kMiB);
  REQUIRE(cuMemFree_v2(block) == CUDA_SUCCESS);
  REQUIRE(memory().free <= kOtherLimit - 300 * kMiB);
  refused(kOtherLimit - 300 * kMiB + 1);
  REQUIRE(cuCtxSetCurrent(first) == CUDA_SUCCESS);
  all_is_free();
  REQUIRE(cuMemFree_v2(other) == CUDA_SUCCESS);
}

TEST_CASE("refusals by every function leave a context that works", "[reports]") {
  enter();
  for (int round = 0; round < 50; ++round) {
    CUdeviceptr address = kBefore;
    CUmemGenericAllocationHandle handle = 0;
    refused(2 * kLimit);
    REQUIRE(cuMemAllocAsync(&address, 2 * kLimit, nullptr) == CUDA_ERROR_OUT_OF_MEMORY);
    REQUIRE(cuMemAllocManaged(&address, 2 * kLimit, CU_MEM_ATTACH_GLOBAL) == CUDA_ERROR_OUT_OF_MEMORY);
    REQUIRE(make_physical(&handle, 2 * kLimit, 0) == CUDA_ERROR_OUT_OF_MEMORY);
    REQUIRE(cuCtxSynchronize() == CUDA_SUCCESS);
    REQUIRE(cuStreamQuery(nullptr) == CUDA_SUCCESS);
    const CUdeviceptr block = take(kMiB);
    REQUIRE(cuMemsetD8_v2(block, 1, kMiB) == CUDA_SUCCESS);
    REQUIRE(cuMemFree_v2(block) == CUDA_SUCCESS);
  }
  all_is_free();
}

TEST_CASE("physical memory stays charged until neither a mapping nor a handle holds it", "[reports]") {
  enter();
  constexpr size_t kBytes = 600 * kMiB;
  CUmemGenericAllocationHandle handle = 0;
  CUdeviceptr range = 0;
  REQUIRE(make_physical(&handle, kBytes, 0) == CUDA_SUCCESS);
  REQUIRE(cuMemAddressReserve(&range, kBytes, 0, 0, 0) == CUDA_SUCCESS);
  REQUIRE(cuMemMap(range, kBytes, 0, handle, 0) == CUDA_SUCCESS);
  REQUIRE(cuMemRelease(handle) == CUDA_SUCCESS);
  refused(kLimit - kBytes + 2 * kMiB);
  CUmemGenericAllocationHandle retained = 0;
  REQUIRE(cuMemRetainAllocationHandle(&retained, reinterpret_cast<void *>(range)) == CUDA_SUCCESS);
  REQUIRE(cuMemUnmap(range, kBytes) == CUDA_SUCCESS);
  refused(kLimit - kBytes + 2 * kMiB);
  REQUIRE(cuMemRelease(retained) == CUDA_SUCCESS);
  REQUIRE(cuMemAddressFree(range, kBytes) == CUDA_SUCCESS);
  all_is_free();
}

TEST_CASE("a pool that was trimmed leaves its memory to other functions", "[reports]") {
  enter();
  CUmemoryPool pool = nullptr;
  REQUIRE(cuDeviceGetDefaultMemPool(&pool, 0) == CUDA_SUCCESS);
  cuuint64_t all = UINT64_MAX;
  REQUIRE(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &all) == CUDA_SUCCESS);
  for (int round = 0; round < 3; ++round) {
    CUdeviceptr streamed = 0;
    REQUIRE(cuMemAllocAsync(&streamed, 800 * kMiB, nullptr) == CUDA_SUCCESS);
    REQUIRE(cuMemFreeAsync(streamed, nullptr) == CUDA_SUCCESS);
    REQUIRE(cuStreamSynchronize(nullptr) == CUDA_SUCCESS);
    REQUIRE(cuMemPoolTrimTo(pool, 0) == CUDA_SUCCESS);
    all_is_free();
  }
}

TEST_CASE("very many small blocks live at once and are freed in another order", "[reports]") {
  enter();
  constexpr size_t kBlocks = 20'011;  // a prime
  std::vector<CUdeviceptr> blocks;
  for (size_t i = 0; i < kBlocks; ++i) {
    blocks.push_back(take(1 + i % 600));
  }
  REQUIRE(std::set<CUdeviceptr>(blocks.begin(), blocks.end()).size() == kBlocks);
  for (size_t i = 0; i < kBlocks; ++i) {
    REQUIRE(cuMemFree_v2(blocks[i * 7919 % kBlocks]) == CUDA_SUCCESS);
  }
  all_is_free();
}

TEST_CASE("a reset of the primary context gives back all that it held", "[reports]") {
  CUcontext context = nullptr;
  REQUIRE(cuInit(0) == CUDA_SUCCESS);
  for (int round = 0; round < 3; ++round) {
    REQUIRE(cuDevicePrimaryCtxRetain(&context, 0) == CUDA_SUCCESS);
    REQUIRE(cuCtxSetCurrent(context) == CUDA_SUCCESS);
    take(500 * kMiB);
    CUdeviceptr managed = 0;
    REQUIRE(cuMemAllocManaged(&managed, 100 * kMiB, CU_MEM_ATTACH_GLOBAL) == CUDA_SUCCESS);
    refused(kLimit - 600 * kMiB + 1);
    REQUIRE(cuDevicePrimaryCtxReset_v2(0) == CUDA_SUCCESS);
    REQUIRE(held() == 0);
  }
}

}  // namespace
}  // namespace failures
