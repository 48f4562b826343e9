// granules CASE: what a pool of granules serves that one of slabs cannot. Prints a line for each answer.
#include <stdio.h>
#include <unistd.h>

#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>

#include <algorithm>
#include <atomic>
#include <string_view>
#include <vector>

namespace {

constexpr size_t kMiB = 1 << 20;

void report(const char *what, long long value) {
  printf("%s: %lld\n", what, value);
}

std::vector<CUdeviceptr> fill(size_t bytes) {
  std::vector<CUdeviceptr> blocks;
  for (CUdeviceptr block = 0; cuMemAlloc_v2(&block, bytes) == CUDA_SUCCESS;) blocks.push_back(block);
  return blocks;
}

void free_all(const std::vector<CUdeviceptr> &blocks) {
  for (const CUdeviceptr block : blocks) cuMemFree_v2(block);
}

bool holds(CUdeviceptr block, size_t bytes, unsigned char value) {
  std::vector<unsigned char> seen(bytes);
  if (cuMemcpyDtoH_v2(seen.data(), block, bytes) != CUDA_SUCCESS) return false;
  return std::all_of(seen.begin(), seen.end(), [value](unsigned char each) { return each == value; });
}

// Every second block of a full pool is freed, and their memory is one block. Each byte is its owner's.
void every_second() {
  std::vector<CUdeviceptr> blocks = fill(4 * kMiB);
  report("blocks", static_cast<long long>(blocks.size()));
  for (size_t i = 0; i < blocks.size(); ++i) cuMemsetD8_v2(blocks[i], static_cast<unsigned char>(i), 4 * kMiB);
  cuCtxSynchronize();
  for (size_t i = 0; i < blocks.size(); i += 2) cuMemFree_v2(blocks[i]);
  const size_t bytes = blocks.size() / 2 * 4 * kMiB;
  CUdeviceptr large = 0;
  report("cuMemAlloc", cuMemAlloc_v2(&large, bytes));
  report("cuMemsetD8", cuMemsetD8_v2(large, 201, bytes));
  CUdeviceptr base = 0;
  size_t size = 0;
  report("cuMemGetAddressRange", cuMemGetAddressRange_v2(&base, &size, large + bytes - 1));
  report("the range", base == large && size == bytes ? 0 : 1);
  bool right = holds(large, bytes, 201);
  for (size_t i = 1; i < blocks.size(); i += 2) right &= holds(blocks[i], 4 * kMiB, static_cast<unsigned char>(i));
  report("every byte is its owner's", right ? 0 : 1);
  report("cuMemFree", cuMemFree_v2(large));
  report("again", cuMemFree_v2(large));
}

// The physical memory of each page of a block.
std::vector<unsigned long long> memory_of(CUdeviceptr block, size_t bytes) {
  std::vector<unsigned long long> pages;
  for (size_t at = 0; at < bytes; at += 2 * kMiB) {
    cuPointerGetAttribute(&pages.emplace_back(), CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID, block + at);
  }
  return pages;
}

int export_range(const char *what, CUdeviceptr address, size_t bytes) {
  int file = -1;
  report(what, cuMemGetHandleForAddressRange(&file, address, bytes, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0));
  return file;
}

// A block of granules that lie apart has DMA-BUFs, and keeps its memory whatever else is freed and asked for.
void exported() {
  std::vector<CUdeviceptr> blocks = fill(4 * kMiB);
  for (size_t i = 0; i < blocks.size(); i += 2) cuMemFree_v2(blocks[i]);
  const size_t bytes = blocks.size() / 2 * 4 * kMiB;
  CUdeviceptr large = 0;
  report("cuMemAlloc", cuMemAlloc_v2(&large, bytes));
  const int all = export_range("all of it", large, bytes), part = export_range("a part", large + 3 * kMiB, 6 * kMiB);
  report("its bytes", lseek(all, 0, SEEK_END) == static_cast<off_t>(bytes) ? 0 : 1);
  report("descriptors", all >= 0 && part >= 0 && all != part ? 0 : 1);
  export_range("no whole pages", large + 512, 4096);
  cuMemsetD8_v2(large, 201, bytes);
  const std::vector<unsigned long long> before = memory_of(large, bytes);
  for (size_t i = 1; i < blocks.size(); i += 2) cuMemFree_v2(blocks[i]);
  CUdeviceptr managed = 0;
  report("cuMemAllocManaged", cuMemAllocManaged(&managed, bytes / 2, CU_MEM_ATTACH_GLOBAL));
  free_all(fill(2 * kMiB));
  report("the same memory", memory_of(large, bytes) == before ? 0 : 1);
  report("every byte is its owner's", holds(large, bytes, 201) ? 0 : 1);
  close(all);
  close(part);
  report("cuMemFree", cuMemFree_v2(large));
}

// After the pool was full and is free, every other API gets the room, and then the pool again.
void apis() {
  free_all(fill(64 * kMiB));
  std::vector<CUdeviceptr> managed;
  for (CUdeviceptr block = 0; cuMemAllocManaged(&block, 64 * kMiB, CU_MEM_ATTACH_GLOBAL) == CUDA_SUCCESS;) {
    managed.push_back(block);
  }
  report("managed", static_cast<long long>(managed.size()));
  free_all(managed);
  free_all(fill(64 * kMiB));
  std::vector<CUmemGenericAllocationHandle> handles;
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  for (CUmemGenericAllocationHandle handle = 0; cuMemCreate(&handle, 64 * kMiB, &properties, 0) == CUDA_SUCCESS;) {
    handles.push_back(handle);
  }
  report("handles", static_cast<long long>(handles.size()));
  for (const CUmemGenericAllocationHandle handle : handles) cuMemRelease(handle);
  const std::vector<CUdeviceptr> blocks = fill(64 * kMiB);
  report("blocks", static_cast<long long>(blocks.size()));
  free_all(blocks);
}

// What the pool does not need goes back while the device is at work.
void busy() {
  free_all(fill(64 * kMiB));
  cuCtxSynchronize();
  CUstream stream = nullptr;
  cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
  static std::atomic<bool> over{false};
  cuLaunchHostFunc(
      stream,
      [](void *) {
        while (!over.load()) {
        }
      },
      nullptr);
  CUdeviceptr block = 0;
  report("cuMemAllocManaged", cuMemAllocManaged(&block, 512 * kMiB, CU_MEM_ATTACH_GLOBAL));
  over.store(true);
  cuCtxSynchronize();
}

// A context takes its granules along.
void lives() {
  for (int life = 0; life < 3; ++life) {
    CUcontext context = nullptr;
    cuCtxCreate_v2(&context, 0, 0);
    const std::vector<CUdeviceptr> blocks = fill(64 * kMiB);
    report("blocks", static_cast<long long>(blocks.size()));
    for (size_t i = 0; i < blocks.size(); i += 2) cuMemFree_v2(blocks[i]);
    CUdeviceptr large = 0;
    report("cuMemAlloc", cuMemAlloc_v2(&large, 300 * kMiB));
    cuCtxDestroy_v2(context);
  }
}

// What a program asks about a block, it is answered as for any allocation.
void questions() {
  CUdeviceptr block = 0;
  cuMemAlloc_v2(&block, 64 * kMiB);
  CUcontext current = nullptr;
  CUcontext owner = nullptr;
  cuCtxGetCurrent(&current);
  report("cuPointerGetAttribute", cuPointerGetAttribute(&owner, CU_POINTER_ATTRIBUTE_CONTEXT, block));
  report("its context", owner == current ? 0 : 1);
  CUmemGenericAllocationHandle handle = 0;
  report("cuMemRetainAllocationHandle", cuMemRetainAllocationHandle(&handle, reinterpret_cast<void *>(block)));
  report("cuMemUnmap", cuMemUnmap(block, 2 * kMiB));
  const CUmemAccessDesc access{{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READ};
  report("cuMemSetAccess", cuMemSetAccess(block, 2 * kMiB, &access, 1));
  report("cuMemsetD8", cuMemsetD8_v2(block, 1, 64 * kMiB));
  report("cuCtxSynchronize", cuCtxSynchronize());
}

// Memory that the pool gets only after the driver's own pool gave it is in granules that go back one by one, too.
void after_room() {
  CUmemoryPool pool = nullptr;
  cuuint64_t all = UINT64_MAX;
  cuDeviceGetDefaultMemPool(&pool, 0);
  cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &all);
  CUdeviceptr kept = 0;
  CUdeviceptr freed = 0;
  cuMemAlloc_v2(&kept, 416 * kMiB);
  cuMemAllocAsync(&freed, 480 * kMiB, nullptr);
  cuMemFreeAsync(freed, nullptr);
  cuCtxSynchronize();
  report("cuMemAlloc", cuMemAlloc_v2(&freed, 232 * kMiB));
  report("cuMemFree", cuMemFree_v2(freed));
  cuMemAlloc_v2(&kept, 16 * kMiB);  // in the memory of the block
  cuMemPoolTrimTo(pool, 0);
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  CUmemGenericAllocationHandle handle = 0;
  report("cuMemCreate", cuMemCreate(&handle, 480 * kMiB, &properties, 0));
}

// Whether a network card can reach a block.
void rdma() {
  CUdeviceptr block = 0;
  cuMemAlloc_v2(&block, 64 * kMiB);
  int capable = 0;
  report("cuPointerGetAttribute",
         cuPointerGetAttribute(&capable, CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE, block));
  report("capable", capable);
}

}  // namespace

int main(int count, char **words) {
  const std::string_view name(count == 2 ? words[1] : "");
  CUcontext context = nullptr;
  if (cuInit(0) != CUDA_SUCCESS || cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS ||
      cuCtxSetCurrent(context) != CUDA_SUCCESS) {
    return 1;
  }
  if (name == "every_second") {
    every_second();
  } else if (name == "exported") {
    exported();
  } else if (name == "apis") {
    apis();
  } else if (name == "busy") {
    busy();
  } else if (name == "lives") {
    lives();
  } else if (name == "questions") {
    questions();
  } else if (name == "after_room") {
    after_room();
  } else if (name == "rdma") {
    rdma();
  } else {
    return 2;
  }
  return 0;
}
