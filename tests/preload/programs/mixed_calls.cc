// A long mixed sequence of driver calls, valid and invalid; prints the code and the values of each. Addresses are
// printed relative to the first, so that two runs can be compared line by line. Also built with MIXED_BY_DLSYM: the
// same calls through looked-up functions.
#include <dlfcn.h>
#include <string.h>

#include <random>
#include <vector>

#include "fill.h"

namespace {

int line = 0;
CUdeviceptr base = 0;

void say(const char *call, CUresult result, long long first = 0, long long second = 0) {
  dprintf(1, "%d %s = %d %lld %lld\n", ++line, call, static_cast<int>(result), first, second);
}

long long relative(CUdeviceptr address) {
  return address == 0 ? -1 : static_cast<long long>(address - base);
}

#ifdef MIXED_BY_DLSYM
template <class Function>
Function found(const char *name, Function) {
  static void *const driver = dlopen("libcuda.so.1", RTLD_NOW);
  return reinterpret_cast<Function>(dlsym(driver, name));
}
#define CALL(symbol) found(#symbol, &::symbol)
#else
#define CALL(symbol) ::symbol
#endif

void queries(const char *when, CUdeviceptr address) {
  size_t free_bytes = 7;
  size_t total = 7;
  say(when, CALL(cuMemGetInfo_v2)(&free_bytes, &total), static_cast<long long>(free_bytes),
      static_cast<long long>(total));
  say("cuMemGetInfo_v2(free)", CALL(cuMemGetInfo_v2)(&free_bytes, nullptr), static_cast<long long>(free_bytes));
  say("cuMemGetInfo_v2(total)", CALL(cuMemGetInfo_v2)(nullptr, &total), static_cast<long long>(total));
  say("cuMemGetInfo_v2()", CALL(cuMemGetInfo_v2)(nullptr, nullptr));
  for (const CUdevice device : {0, 1, 7, -1}) {
    size_t bytes = 7;
    say("cuDeviceTotalMem_v2", CALL(cuDeviceTotalMem_v2)(&bytes, device), static_cast<long long>(bytes), device);
  }
  say("cuDeviceTotalMem_v2()", CALL(cuDeviceTotalMem_v2)(nullptr, 0));
  for (const CUdeviceptr asked : {address, address + 1, CUdeviceptr{0}, CUdeviceptr{12345}}) {
    CUdeviceptr start = asked + 7;
    size_t size = 7;
    // The distance from the start to the queried address: the kernel chooses how far two devices' ranges are apart.
    const CUresult result = CALL(cuMemGetAddressRange_v2)(&start, &size, asked);
    say("cuMemGetAddressRange_v2", result, static_cast<long long>(asked - start), static_cast<long long>(size));
    unsigned type = 77;
    say("cuPointerGetAttribute(type)", CALL(cuPointerGetAttribute)(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, asked),
        type);
    int ordinal = 77;
    unsigned managed = 77;
    CUpointer_attribute attributes[] = {CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, CU_POINTER_ATTRIBUTE_IS_MANAGED};
    void *values[] = {&ordinal, &managed};
    say("cuPointerGetAttributes", CALL(cuPointerGetAttributes)(2, attributes, values, asked), ordinal, managed);
  }
}

void allocations(unsigned seed) {
  std::mt19937 random(seed);
  std::vector<CUdeviceptr> blocks;
  for (int i = 0; i < 120; ++i) {
    CUdeviceptr address = base;
    if (blocks.empty() || random() % 3 != 0) {
      const size_t bytes = size_t{1} << random() % 28;
      const CUresult result = CALL(cuMemAlloc_v2)(&address, bytes);
      say("cuMemAlloc_v2", result, relative(address), static_cast<long long>(bytes));
      if (result == CUDA_SUCCESS) {
        blocks.push_back(address);
      }
    } else {
      address = blocks.back();
      blocks.pop_back();
      say("cuMemFree_v2", CALL(cuMemFree_v2)(address), relative(address));
      say("cuMemFree_v2 again", CALL(cuMemFree_v2)(address), relative(address));
    }
  }
  for (const CUdeviceptr address : blocks) {
    say("cuMemFree_v2", CALL(cuMemFree_v2)(address), relative(address));
  }
}

void wrong_calls(CUdeviceptr address) {
  CUdeviceptr out = base;
  size_t pitch = 7;
  say("cuMemAlloc_v2(0 bytes)", CALL(cuMemAlloc_v2)(&out, 0), relative(out));
  say("cuMemAlloc_v2(null)", CALL(cuMemAlloc_v2)(nullptr, 512));
  say("cuMemAlloc_v2(null, 0 bytes)", CALL(cuMemAlloc_v2)(nullptr, 0));
  say("cuMemAlloc_v2(more than there is)", CALL(cuMemAlloc_v2)(&out, size_t{1} << 44), relative(out));
  say("cuMemAlloc_v2(everything)", CALL(cuMemAlloc_v2)(&out, ~size_t{0}), relative(out));
  for (const unsigned element : {4u, 8u, 16u, 0u, 3u}) {
    CUdeviceptr pitched = base;
    say("cuMemAllocPitch_v2", CALL(cuMemAllocPitch_v2)(&pitched, &pitch, 1000, 9, element), relative(pitched),
        static_cast<long long>(pitch));
    say("cuMemFree_v2", pitched != base ? CALL(cuMemFree_v2)(pitched) : CUDA_SUCCESS);
  }
  say("cuMemAllocPitch_v2(no rows)", CALL(cuMemAllocPitch_v2)(&out, &pitch, 1000, 0, 4), relative(out));
  say("cuMemAllocPitch_v2(null pitch)", CALL(cuMemAllocPitch_v2)(&out, nullptr, 1000, 3, 4), relative(out));
  say("cuMemAllocPitch_v2(null)", CALL(cuMemAllocPitch_v2)(nullptr, &pitch, 1000, 3, 4));
  say("cuMemAllocPitch_v2(huge)", CALL(cuMemAllocPitch_v2)(&out, &pitch, ~size_t{0} / 2, 8, 4), relative(out));
  for (const CUdeviceptr bad : {CUdeviceptr{0}, CUdeviceptr{1}, CUdeviceptr{0xdeadbeef}, address + 1, address + 511}) {
    say("cuMemFree_v2(bad)", CALL(cuMemFree_v2)(bad), bad == 0);
    say("cuMemFreeAsync(bad)", CALL(cuMemFreeAsync)(bad, nullptr));
  }
  say("cuDevicePrimaryCtxRetain(bad)", CALL(cuDevicePrimaryCtxRetain)(nullptr, 0));
  CUcontext context = nullptr;
  say("cuDevicePrimaryCtxRetain(device 9)", CALL(cuDevicePrimaryCtxRetain)(&context, 9), context != nullptr);
  say("cuDevicePrimaryCtxRelease(idle)", CALL(cuDevicePrimaryCtxRelease_v2)(1));
  say("cuCtxCreate_v2(null)", CALL(cuCtxCreate_v2)(nullptr, 0, 0));
  say("cuCtxCreate_v2(device 9)", CALL(cuCtxCreate_v2)(&context, 0, 9), context != nullptr);
  say("cuCtxCreate_v2(flags)", CALL(cuCtxCreate_v2)(&context, 0xffff, 0), context != nullptr);
  say("cuCtxDestroy_v2(null)", CALL(cuCtxDestroy_v2)(nullptr));
  say("cuCtxDetach(null)", CALL(cuCtxDetach)(nullptr));
}

void look_ups() {
  for (const char *name : {"cuMemAlloc", "cuMemFree", "cuMemFreeAsync", "cuMemGetInfo", "cuCtxCreate", "cuCtxDestroy",
                           "cuGetProcAddress", "cuInit", "cuMemAlloc_v2", "cuNoSuchFunction", ""}) {
    for (const int version : {0, 2000, 3020, 7000, 11030, 12000, 12050, 13000, 99000}) {
      for (const cuuint64_t flags : {0u, 1u, 2u, 3u}) {
        void *pointer = nullptr;
        CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SUCCESS;
        const CUresult result = CALL(cuGetProcAddress_v2)(name, &pointer, version, flags, &status);
        say(name, result, pointer != nullptr, status);
        pointer = nullptr;
        say(name, CALL(cuGetProcAddress)(name, &pointer, version, flags), pointer != nullptr);
      }
    }
  }
  say("cuGetProcAddress_v2(null)", CALL(cuGetProcAddress_v2)(nullptr, nullptr, 12000, 0, nullptr));
  say("cuGetProcAddress_v2(null pointer)", CALL(cuGetProcAddress_v2)("cuMemAlloc", nullptr, 12000, 0, nullptr));
}

void streams() {
  CUstream stream = nullptr;
  say("cuStreamCreate", CALL(cuStreamCreate)(&stream, 0));
  for (int i = 0; i < 12; ++i) {
    CUdeviceptr address = base;
    // Not the address itself: the block freed last may or may not be available by now.
    say("cuMemAlloc_v2", CALL(cuMemAlloc_v2)(&address, size_t{1} << (10 + i)), address != base, address % 512 == 0);
    char bytes[64] = "what was written is what is read";
    char back[64] = {};
    say("cuMemcpyHtoDAsync_v2", CALL(cuMemcpyHtoDAsync_v2)(address, bytes, sizeof(bytes), stream));
    say("cuMemcpyDtoHAsync_v2", CALL(cuMemcpyDtoHAsync_v2)(back, address, sizeof(back), stream));
    say("cuStreamSynchronize", CALL(cuStreamSynchronize)(stream), memcmp(bytes, back, sizeof(bytes)));
    const CUresult result =
        i % 2 == 0 ? CALL(cuMemFreeAsync)(address, stream) : CALL(cuMemFreeAsync_ptsz)(address, nullptr);
    say("cuMemFreeAsync", result, i);
    say("cuMemFree_v2 after it", CALL(cuMemFree_v2)(address));
  }
  say("cuMemFreeAsync(bad stream)", CALL(cuMemFreeAsync)(base, reinterpret_cast<CUstream>(0x1234)));
  say("cuStreamSynchronize", CALL(cuStreamSynchronize)(stream));
  say("cuStreamSynchronize_ptsz", CALL(cuStreamSynchronize_ptsz)(nullptr));
  say("cuStreamDestroy_v2", CALL(cuStreamDestroy_v2)(stream));
}

// Each way in which a context can begin and end, with a block in it.
void contexts() {
  CUcontext context = nullptr;
  CUdeviceptr address = 0;
  for (int i = 0; i < 3; ++i) {
    say("cuCtxCreate_v2", CALL(cuCtxCreate_v2)(&context, 0, i % 2), context != nullptr);
    say("cuMemAlloc_v2", CALL(cuMemAlloc_v2)(&address, 5 << 20));
    queries("in a context of its own", address);
    say("cuCtxAttach", CALL(cuCtxAttach)(&context, 0));
    say("cuCtxDetach", CALL(cuCtxDetach)(context));
    say("cuCtxDestroy_v2", i == 2 ? CALL(cuCtxDetach)(context) : CALL(cuCtxDestroy_v2)(context));
    say("cuCtxDestroy_v2 again", CALL(cuCtxDestroy_v2)(context));
    say("cuMemFree_v2 of what went with it", CALL(cuMemFree_v2)(address));
  }
  for (const CUdevice device : {0, 1}) {
    say("cuDevicePrimaryCtxRetain", CALL(cuDevicePrimaryCtxRetain)(&context, device));
    say("cuDevicePrimaryCtxRetain", CALL(cuDevicePrimaryCtxRetain)(&context, device));
    say("cuCtxSetCurrent", CALL(cuCtxSetCurrent)(context));
    say("cuMemAlloc_v2", CALL(cuMemAlloc_v2)(&address, 5 << 20));
    queries("in the primary context", address);
    say("cuDevicePrimaryCtxRelease", CALL(cuDevicePrimaryCtxRelease)(device));
    say("cuMemFree_v2", CALL(cuMemFree_v2)(address));
    say("cuMemAlloc_v2", CALL(cuMemAlloc_v2)(&address, 5 << 20));
    say("cuDevicePrimaryCtxReset_v2",
        device == 0 ? CALL(cuDevicePrimaryCtxReset_v2)(device) : CALL(cuDevicePrimaryCtxReset)(device));
    say("cuDevicePrimaryCtxRelease_v2", CALL(cuDevicePrimaryCtxRelease_v2)(device));
    say("cuMemFree_v2", CALL(cuMemFree_v2)(address));
  }
}

void before_start() {
  CUdeviceptr out = base;
  size_t bytes = 7;
  CUcontext context = nullptr;
  say("cuMemAlloc_v2 before cuInit", CALL(cuMemAlloc_v2)(&out, 512), relative(out));
  say("cuMemGetInfo_v2 before cuInit", CALL(cuMemGetInfo_v2)(&bytes, &bytes), static_cast<long long>(bytes));
  say("cuDeviceTotalMem_v2 before cuInit", CALL(cuDeviceTotalMem_v2)(&bytes, 0), static_cast<long long>(bytes));
  say("cuMemFree_v2 before cuInit", CALL(cuMemFree_v2)(512));
  say("cuDevicePrimaryCtxRetain before cuInit", CALL(cuDevicePrimaryCtxRetain)(&context, 0));
  say("cuCtxCreate_v2 before cuInit", CALL(cuCtxCreate_v2)(&context, 0, 0));
}

}  // namespace

int main() {
  before_start();
  say("cuInit", CALL(cuInit)(0));
  CUdeviceptr out = base;
  say("cuMemAlloc_v2 without a context", CALL(cuMemAlloc_v2)(&out, 512), relative(out));
  say("cuMemFree_v2 without a context", CALL(cuMemFree_v2)(512));
  queries("without a context", 0);
  CUcontext context = nullptr;
  say("cuCtxCreate_v2", CALL(cuCtxCreate_v2)(&context, 0, 0));
  say("cuMemAlloc_v2", CALL(cuMemAlloc_v2)(&base, 1 << 20));
  queries("with one block", base);
  allocations(1);
  wrong_calls(base);
  look_ups();
  streams();
  contexts();
  say("cuCtxSetCurrent", CALL(cuCtxSetCurrent)(context));
  allocations(2);
  queries("at the end", base);
  say("cuCtxDestroy_v2", CALL(cuCtxDestroy_v2)(context));
  return 0;
}
