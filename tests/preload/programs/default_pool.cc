// default_pool CASE BYTES [BLOCKS]: what a program can do with a device's default memory pool, in lines that do not
// depend on addresses.
#include <cuda.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

CUstream stream = nullptr;
CUmemoryPool pool = nullptr;

void say(const char *what, unsigned long long value) {
  std::printf("%s %llu\n", what, value);
}

CUdeviceptr take(std::size_t bytes) {
  CUdeviceptr block = 0;
  say("cuMemAllocAsync", cuMemAllocAsync(&block, bytes, stream));
  return block;
}

unsigned long long figure(CUmemPool_attribute which) {
  cuuint64_t value = 0;
  const CUresult result = cuMemPoolGetAttribute(pool, which, &value);
  return result == CUDA_SUCCESS ? value : ~0ULL;
}

void say_figures() {
  say("reserved", figure(CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT));
  say("used", figure(CU_MEMPOOL_ATTR_USED_MEM_CURRENT));
  say("threshold", figure(CU_MEMPOOL_ATTR_RELEASE_THRESHOLD));
}

CUmemLocation on_device(int device) {
  CUmemLocation location{};
  location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  location.id = device;
  return location;
}

void say_access(int device) {
  CUmemLocation location = on_device(device);
  CUmemAccess_flags flags{};
  const CUresult result = cuMemPoolGetAccess(&flags, pool, &location);
  say("cuMemPoolGetAccess", result);
  say("access", flags);
}

// The settings and figures of the pool, and which pool a block and the device name.
void settings() {
  cuuint64_t keep = ~0ULL;
  say("cuMemPoolSetAttribute", cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep));
  say_figures();
  const CUdeviceptr block = take(40 * kMiB);
  say_figures();
  CUmemoryPool of_block = nullptr, current = nullptr;
  say("attribute", cuPointerGetAttribute(&of_block, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, block));
  say("the block's pool is the default one", of_block == pool);
  cuDeviceGetMemPool(&current, 0);
  say("so is the device's", current == pool);
  cuMemFreeAsync(block, stream);
  cuStreamSynchronize(stream);
  say_figures();
  CUdeviceptr named = 0;
  say("cuMemAllocFromPoolAsync", cuMemAllocFromPoolAsync(&named, kMiB, pool, stream));
  say_figures();
  cuMemFreeAsync(named, stream);
  cuStreamSynchronize(stream);
  say("cuMemPoolTrimTo", cuMemPoolTrimTo(pool, 0));
  say_figures();
  cuuint64_t none = 0;
  say("cuMemPoolSetAttribute", cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &none));
  cuMemFreeAsync(take(40 * kMiB), stream);
  cuStreamSynchronize(stream);
  say_figures();
  say("cuMemPoolDestroy", cuMemPoolDestroy(pool));
}

// Which devices reach it.
void access() {
  const CUdeviceptr block = take(kMiB);
  say_access(0);
  say_access(1);
  const CUmemAccessDesc other{on_device(1), CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  say("cuMemPoolSetAccess", cuMemPoolSetAccess(pool, &other, 1));
  say_access(1);
  CUdevice second = 0;
  CUcontext context = nullptr;
  cuDeviceGet(&second, 1);
  cuCtxCreate(&context, nullptr, 0, second);
  say("from the other device", cuMemsetD8(block, 1, 16));
}

// Equal blocks, of which as many fit as on a device of that size.
void fill(std::size_t bytes, std::size_t blocks, CUmemoryPool from) {
  for (std::size_t i = 0; i < blocks; ++i) {
    CUdeviceptr block = 0;
    const CUresult result = from != nullptr ? cuMemAllocFromPoolAsync(&block, bytes / blocks / 512 * 512, from, stream)
                                            : cuMemAllocAsync(&block, bytes / blocks / 512 * 512, stream);
    say("block", result);
  }
}

// Blocks of half a step and a little more, and what fits in addition to them.
void rests(std::size_t bytes) {
  std::vector<CUdeviceptr> blocks;
  for (std::size_t i = 0; i < bytes / (32 * kMiB); ++i) blocks.push_back(take(17 * kMiB));
  for (const std::size_t small : {std::size_t{1024}, 88 * std::size_t{1024}, kMiB, 14 * kMiB, 14 * kMiB, 14 * kMiB}) {
    take(small);
  }
  cuMemFreeAsync(blocks.back(), stream);
  take(16 * kMiB);
  take(1024);
}

CUmemoryPool own_pool() {
  CUmemPoolProps properties{};
  properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = on_device(0);
  CUmemoryPool made = nullptr;
  cuMemPoolCreate(&made, &properties);
  return made;
}

}  // namespace

int main(int argc, char **argv) {
  if (argc < 3) return 2;
  const std::string name = argv[1];
  const std::size_t bytes = std::strtoull(argv[2], nullptr, 10);
  const std::size_t blocks = argc > 3 ? std::strtoull(argv[3], nullptr, 10) : 1;
  CUcontext context = nullptr;
  if (cuInit(0) != CUDA_SUCCESS || cuCtxCreate(&context, nullptr, 0, 0) != CUDA_SUCCESS ||
      cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS ||
      cuDeviceGetDefaultMemPool(&pool, 0) != CUDA_SUCCESS) {
    return 2;
  }
  if (name == "settings") {
    settings();
  } else if (name == "access") {
    access();
  } else if (name == "fill") {
    fill(bytes, blocks, nullptr);
  } else if (name == "fill_named") {
    fill(bytes, blocks, pool);
  } else if (name == "fill_own") {
    fill(bytes, blocks, own_pool());
  } else if (name == "rests") {
    rests(bytes);
  } else {
    return 2;
  }
  return 0;
}
