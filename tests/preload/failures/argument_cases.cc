// Invalid arguments, and pointer attributes while other blocks are allocated and freed.
#include <nvml.h>

#include <atomic>
#include <iterator>
#include <string>
#include <thread>

#include "cases.h"

namespace failures {
namespace {

// Expects the driver's own result code, from a call that bypasses Ration.
template <class Function, class... Arguments>
void as_the_driver(const char *name, Function *function, Arguments... arguments) {
  CAPTURE(name);
  const CUresult wanted = behind_ration(name, function)(arguments...);
  REQUIRE(function(arguments...) == wanted);
}

TEST_CASE("queries and allocations without an output pointer do not crash", "[arguments]") {
  enter();
  const CUdeviceptr block = take(kMiB);
  CUpointer_attribute which = CU_POINTER_ATTRIBUTE_RANGE_SIZE;
  as_the_driver("cuMemGetInfo_v2", &cuMemGetInfo_v2, nullptr, nullptr);
  as_the_driver("cuMemGetInfo", &cuMemGetInfo, nullptr, nullptr);
  as_the_driver("cuDeviceTotalMem_v2", &cuDeviceTotalMem_v2, nullptr, 0);
  as_the_driver("cuDeviceTotalMem", &cuDeviceTotalMem, nullptr, 0);
  as_the_driver("cuMemGetAddressRange_v2", &cuMemGetAddressRange_v2, nullptr, nullptr, block);
  as_the_driver("cuPointerGetAttribute", &cuPointerGetAttribute, nullptr, which, block);
  as_the_driver("cuPointerGetAttributes", &cuPointerGetAttributes, 1U, nullptr, nullptr, block);
  as_the_driver("cuPointerGetAttributes", &cuPointerGetAttributes, 1U, &which, nullptr, block);
  as_the_driver("cuMemAlloc_v2", &cuMemAlloc_v2, nullptr, kMiB);
  as_the_driver("cuMemAlloc", &cuMemAlloc, nullptr, 1024U);
  as_the_driver("cuMemAllocPitch_v2", &cuMemAllocPitch_v2, nullptr, nullptr, size_t{4}, size_t{4}, 4U);
  as_the_driver("cuMemAllocManaged", &cuMemAllocManaged, nullptr, kMiB, unsigned{CU_MEM_ATTACH_GLOBAL});
  as_the_driver("cuMemAllocAsync", &cuMemAllocAsync, nullptr, kMiB, nullptr);
  as_the_driver("cuMemAllocFromPoolAsync", &cuMemAllocFromPoolAsync, nullptr, kMiB, nullptr, nullptr);
  as_the_driver("cuMemHostAlloc", &cuMemHostAlloc, nullptr, kMiB, 0U);
  as_the_driver("cuMemAllocHost_v2", &cuMemAllocHost_v2, nullptr, kMiB);
  as_the_driver("cuMemHostRegister_v2", &cuMemHostRegister_v2, nullptr, kMiB, 0U);
  as_the_driver("cuArrayCreate_v2", &cuArrayCreate_v2, nullptr, nullptr);
  as_the_driver("cuArray3DCreate_v2", &cuArray3DCreate_v2, nullptr, nullptr);
  as_the_driver("cuMipmappedArrayCreate", &cuMipmappedArrayCreate, nullptr, nullptr, 1U);
  as_the_driver("cuMemCreate", &cuMemCreate, nullptr, 2 * kMiB, nullptr, 0ULL);
  as_the_driver("cuMemPoolCreate", &cuMemPoolCreate, nullptr, nullptr);
  as_the_driver("cuIpcGetMemHandle", &cuIpcGetMemHandle, nullptr, block);
  as_the_driver("cuDevicePrimaryCtxRetain", &cuDevicePrimaryCtxRetain, nullptr, 0);
  as_the_driver("cuCtxCreate_v2", &cuCtxCreate_v2, nullptr, 0U, 0);
  REQUIRE(nvmlInit_v2() == NVML_SUCCESS);
  nvmlDevice_t device = nullptr;
  REQUIRE(nvmlDeviceGetHandleByIndex_v2(0, &device) == NVML_SUCCESS);
  REQUIRE(nvmlDeviceGetMemoryInfo(device, nullptr) == NVML_ERROR_INVALID_ARGUMENT);
  REQUIRE(nvmlDeviceGetMemoryInfo_v2(device, nullptr) == NVML_ERROR_INVALID_ARGUMENT);
  REQUIRE(cuMemFree_v2(block) == CUDA_SUCCESS);
  all_is_free();
}

TEST_CASE("the driver refuses a device number without a device", "[arguments]") {
  const CUcontext context = enter();
  size_t bytes = 0;
  CUcontext other = nullptr;
  CUmemoryPool pool = nullptr;
  CUmemGenericAllocationHandle handle = 0;
  CUmemPoolProps props = {};
  props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  CUmemAllocationProp prop = {};
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  for (const int nothing : {-1, 2, 15, 16, 17, 63, 64, 850725928, INT32_MAX, INT32_MIN}) {
    CAPTURE(nothing);
    props.location = {CU_MEM_LOCATION_TYPE_DEVICE, nothing};
    prop.location = props.location;
    as_the_driver("cuDeviceTotalMem_v2", &cuDeviceTotalMem_v2, &bytes, nothing);
    as_the_driver("cuCtxCreate_v2", &cuCtxCreate_v2, &other, 0U, nothing);
    as_the_driver("cuDevicePrimaryCtxRetain", &cuDevicePrimaryCtxRetain, &other, nothing);
    as_the_driver("cuDevicePrimaryCtxRelease_v2", &cuDevicePrimaryCtxRelease_v2, nothing);
    as_the_driver("cuDevicePrimaryCtxReset_v2", &cuDevicePrimaryCtxReset_v2, nothing);
    as_the_driver("cuDeviceGetDefaultMemPool", &cuDeviceGetDefaultMemPool, &pool, nothing);
    as_the_driver("cuMemPoolCreate", &cuMemPoolCreate, &pool, &props);
    as_the_driver("cuMemCreate", &cuMemCreate, &handle, 2 * kMiB, &prop, 0ULL);
    prop.location.type = static_cast<CUmemLocationType>(nothing & INT32_MAX);  // the largest value of the type
    as_the_driver("cuMemCreate", &cuMemCreate, &handle, 2 * kMiB, &prop, 0ULL);
    prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    as_the_driver("cuMemCreate", &cuMemCreate, &handle, 2 * kLimit, &prop, 0ULL);  // larger than any device
  }
  REQUIRE(cuCtxSetCurrent(context) == CUDA_SUCCESS);
  all_is_free();
}

TEST_CASE("physical memory needs no context and is charged", "[arguments]") {
  const CUcontext context = enter();
  REQUIRE(cuCtxSetCurrent(nullptr) == CUDA_SUCCESS);
  CUmemGenericAllocationHandle handle = 0;
  CUmemGenericAllocationHandle more = 77;
  REQUIRE(make_physical(&handle, 800 * kMiB, 0) == CUDA_SUCCESS);
  REQUIRE(make_physical(&more, 400 * kMiB, 0) == CUDA_ERROR_OUT_OF_MEMORY);
  REQUIRE(more == 77);
  REQUIRE(cuMemRelease(handle) == CUDA_SUCCESS);
  REQUIRE(cuCtxSetCurrent(context) == CUDA_SUCCESS);
  all_is_free();
}

struct Kind {
  const char *name;
  CUdeviceptr address;
  bool managed;
};

struct Reported {
  unsigned managed = 77;
  CUmemorytype type = {};
  int ordinal = 77;
  CUcontext context = nullptr;
  bool operator==(const Reported &) const = default;
};

// The same with the list form of the query.
CUresult ask(decltype(&cuPointerGetAttributes) function, CUdeviceptr address, Reported &reported) {
  void *places[] = {&reported.managed, &reported.type, &reported.ordinal, &reported.context};
  CUpointer_attribute which[] = {CU_POINTER_ATTRIBUTE_IS_MANAGED, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                 CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, CU_POINTER_ATTRIBUTE_CONTEXT};
  return function(4, which, places, address);
}

bool is_true(const Kind &kind, const Reported &wanted) {
  Reported reported;
  unsigned managed = 77;
  return ask(&cuPointerGetAttributes, kind.address, reported) == CUDA_SUCCESS && reported == wanted &&
         cuPointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, kind.address) == CUDA_SUCCESS &&
         (managed != 0) == kind.managed && (reported.managed != 0) == kind.managed;
}

TEST_CASE("pointer attributes of each kind of memory stay correct while others are freed", "[arguments]") {
  const CUcontext context = enter();
  CUdeviceptr managed = 0;
  CUdeviceptr ordered = 0;
  void *host = nullptr;
  REQUIRE(cuMemAllocManaged(&managed, kMiB, CU_MEM_ATTACH_GLOBAL) == CUDA_SUCCESS);
  REQUIRE(cuMemAllocAsync(&ordered, kMiB, nullptr) == CUDA_SUCCESS);
  REQUIRE(cuMemAllocHost_v2(&host, kMiB) == CUDA_SUCCESS);
  const CUdeviceptr plain = take(kMiB);
  REQUIRE(cuCtxSynchronize() == CUDA_SUCCESS);
  const Kind kinds[] = {{"plain", plain, false},
                        {"inside a plain one", plain + 1000, false},
                        {"managed", managed, true},
                        {"in stream order", ordered, false},
                        {"of the host", reinterpret_cast<CUdeviceptr>(host), false}};
  Reported wanted[std::size(kinds)];  // the driver's own answers
  for (size_t i = 0; i < std::size(kinds); ++i) {
    REQUIRE(ask(behind_ration("cuPointerGetAttributes", &cuPointerGetAttributes), kinds[i].address, wanted[i]) ==
            CUDA_SUCCESS);
  }
  std::atomic<bool> over{false};
  std::atomic<int> wrong{0};
  std::atomic<int> freed{0};
  std::thread others[4];
  for (std::thread &other : others) {
    other = std::thread([&] {
      wrong += cuCtxSetCurrent(context) == CUDA_SUCCESS ? 0 : 1;
      while (!over) {
        CUdeviceptr block = 0;
        wrong += cuMemAlloc_v2(&block, kMiB) == CUDA_SUCCESS ? 0 : 1;
        wrong += cuMemFree_v2(block) == CUDA_SUCCESS ? 0 : 1;
        ++freed;
      }
    });
  }
  std::string untrue;
  for (int round = 0; round < 1000 || freed < 100; ++round) {
    for (size_t i = 0; i < std::size(kinds); ++i) {
      untrue = is_true(kinds[i], wanted[i]) ? untrue : kinds[i].name;
    }
  }
  over = true;
  for (std::thread &other : others) {
    other.join();
  }
  REQUIRE(wrong == 0);
  REQUIRE(untrue.empty());
}

}  // namespace
}  // namespace failures
