// Memory pools: a device's pools, their attributes and properties.
#include "tests/simcuda/conformance/pool.h"

namespace simcuda::conformance {
namespace {

const CUmemLocation kOnDevice = {CU_MEM_LOCATION_TYPE_DEVICE, 0};

CUmemoryPool default_pool() {
  CUmemoryPool pool = nullptr;
  REQUIRE(cuDeviceGetDefaultMemPool(&pool, 0) == CUDA_SUCCESS);
  return pool;
}

CUmemoryPool current_pool() {
  CUmemoryPool pool = nullptr;
  REQUIRE(cuDeviceGetMemPool(&pool, 0) == CUDA_SUCCESS);
  return pool;
}

TEST_CASE("a device that supports pools has a default one, which is current until another is set") {
  start_driver();
  int supported = 0;
  REQUIRE(cuDeviceGetAttribute(&supported, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 0) == CUDA_SUCCESS);
  CHECK(supported == 1);
  const CUmemoryPool first = default_pool();
  CHECK(first != nullptr);
  CHECK(default_pool() == first);
  CHECK(current_pool() == first);
  {
    const Pool other;
    REQUIRE(cuDeviceSetMemPool(0, other.get()) == CUDA_SUCCESS);
    CHECK(current_pool() == other.get());
    CHECK(default_pool() == first);
  }
  CHECK(current_pool() == first);  // destroying the current pool sets the default one
  CHECK(cuMemPoolDestroy(first) == CUDA_ERROR_INVALID_VALUE);
  CHECK(default_pool() == first);
}

TEST_CASE("an allocation that names no pool comes from the current pool") {
  const CurrentContext context;
  Pool pool;
  REQUIRE(cuDeviceSetMemPool(0, pool.get()) == CUDA_SUCCESS);
  CUdeviceptr address = 0;
  REQUIRE(cuMemAllocAsync(&address, kMiB, nullptr) == CUDA_SUCCESS);
  CHECK(pool.used() == kMiB);
  CHECK(cuMemFree(address) == CUDA_SUCCESS);
}

TEST_CASE("a location and a type name the same pools as the device") {
  const CurrentContext context;
  const Pool pool;
  CUmemLocation here = kOnDevice;
  CUmemoryPool found = nullptr;
  REQUIRE(cuMemGetDefaultMemPool(&found, &here, CU_MEM_ALLOCATION_TYPE_PINNED) == CUDA_SUCCESS);
  CHECK(found == default_pool());
  REQUIRE(cuMemSetMemPool(&here, CU_MEM_ALLOCATION_TYPE_PINNED, pool.get()) == CUDA_SUCCESS);
  REQUIRE(cuMemGetMemPool(&found, &here, CU_MEM_ALLOCATION_TYPE_PINNED) == CUDA_SUCCESS);
  CHECK(found == pool.get());
  CHECK(current_pool() == pool.get());
  CUmemLocation nowhere = {CU_MEM_LOCATION_TYPE_NONE, 0}, numa = {CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT, 0};
  // H100, H200, driver 580.159: 1 for one of the two, 801 for the other; which is which was not recorded.
  for (CUmemLocation *location : {&nowhere, &numa}) {
    INFO("location type " << location->type);
    const CUresult wrong = location == &numa ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_INVALID_VALUE;
    CHECK(cuMemGetMemPool(&found, location, CU_MEM_ALLOCATION_TYPE_PINNED) == wrong);
    CHECK(cuMemGetDefaultMemPool(&found, location, CU_MEM_ALLOCATION_TYPE_PINNED) == wrong);
    CHECK(cuMemSetMemPool(location, CU_MEM_ALLOCATION_TYPE_PINNED, pool.get()) == wrong);
  }
  CHECK(cuMemGetMemPool(&found, &here, CU_MEM_ALLOCATION_TYPE_INVALID) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemGetMemPool(nullptr, &here, CU_MEM_ALLOCATION_TYPE_PINNED) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemGetMemPool(&found, nullptr, CU_MEM_ALLOCATION_TYPE_PINNED) == CUDA_ERROR_INVALID_VALUE);
  if (!simulator()) return;  // only device memory is pooled here
  CUmemLocation host = {CU_MEM_LOCATION_TYPE_HOST, 0};
  CHECK(cuMemGetMemPool(&found, &host, CU_MEM_ALLOCATION_TYPE_PINNED) == CUDA_ERROR_NOT_SUPPORTED);
  CHECK(cuMemGetMemPool(&found, &here, CU_MEM_ALLOCATION_TYPE_MANAGED) == CUDA_ERROR_NOT_SUPPORTED);
}

TEST_CASE("an invalid or destroyed pool, or one of another device, is refused") {
  start_driver();
  CUmemoryPool pool = nullptr;
  CHECK(cuDeviceGetDefaultMemPool(&pool, 99) == CUDA_ERROR_INVALID_DEVICE);
  CHECK(cuDeviceGetDefaultMemPool(nullptr, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuDeviceGetMemPool(nullptr, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuDeviceSetMemPool(0, nullptr) == CUDA_ERROR_INVALID_VALUE);
  int count = 0;
  REQUIRE(cuDeviceGetCount(&count) == CUDA_SUCCESS);
  if (count > 1) {
    const Pool other(pool_props(1));
    CHECK(cuDeviceSetMemPool(0, other.get()) == CUDA_ERROR_INVALID_VALUE);
  }
  if (!simulator()) return;  // where invalid handles are errors
  const CUmemPoolProps props = pool_props();
  REQUIRE(cuMemPoolCreate(&pool, &props) == CUDA_SUCCESS);
  REQUIRE(cuMemPoolDestroy(pool) == CUDA_SUCCESS);
  cuuint64_t value = 0;
  CHECK(cuMemPoolDestroy(pool) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemPoolTrimTo(pool, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &value) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuDeviceSetMemPool(0, pool) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("invalid pool properties are refused") {
  start_driver();
  CUmemoryPool pool = nullptr;
  const auto refused = [&](auto change) {
    CUmemPoolProps props = pool_props();
    change(props);
    return cuMemPoolCreate(&pool, &props);
  };
  CHECK(refused([](auto &p) { p.allocType = CU_MEM_ALLOCATION_TYPE_INVALID; }) == CUDA_ERROR_INVALID_VALUE);
  CHECK(refused([](auto &p) { p.location.type = CU_MEM_LOCATION_TYPE_INVALID; }) == CUDA_ERROR_INVALID_VALUE);
  CHECK(refused([](auto &p) { p.location.type = CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT; }) == CUDA_ERROR_INVALID_VALUE);
  CHECK(refused([](auto &p) { p.location.id = 99; }) == CUDA_ERROR_INVALID_VALUE);
  CHECK(refused([](auto &p) { p.reserved[53] = 1; }) == CUDA_ERROR_INVALID_VALUE);
  CHECK(refused([](auto &p) {
          p.location.type = CU_MEM_LOCATION_TYPE_HOST;
          p.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
        }) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemPoolCreate(&pool, nullptr) == CUDA_ERROR_INVALID_VALUE);
  const CUmemPoolProps props = pool_props();
  CHECK(cuMemPoolCreate(nullptr, &props) == CUDA_ERROR_INVALID_VALUE);
  if (simulator()) {
    CHECK(refused([](auto &p) { p.location.type = CU_MEM_LOCATION_TYPE_HOST; }) == CUDA_ERROR_NOT_SUPPORTED);
    CHECK(refused([](auto &p) { p.allocType = CU_MEM_ALLOCATION_TYPE_MANAGED; }) == CUDA_ERROR_NOT_SUPPORTED);
    CHECK(refused([](auto &p) { p.handleTypes = CU_MEM_HANDLE_TYPE_FABRIC; }) == CUDA_ERROR_NOT_SUPPORTED);
  }
  CHECK(pool == nullptr);
  // H100, H200, driver 580.159: ignored
  CHECK(refused([](auto &p) { p.win32SecurityAttributes = &p; }) == CUDA_SUCCESS);
  CHECK(cuMemPoolDestroy(pool) == CUDA_SUCCESS);
}

TEST_CASE("a new pool permits every kind of reuse, keeps nothing and is empty") {
  const Pool pool;
  for (const auto attribute :
       {CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES, CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC,
        CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES}) {
    int values[2] = {-1, -1};
    REQUIRE(cuMemPoolGetAttribute(pool.get(), attribute, values) == CUDA_SUCCESS);
    CHECK(values[0] == 1);
    CHECK(values[1] == -1);  // the attribute is only an int
    pool.allow(attribute, false);
    REQUIRE(cuMemPoolGetAttribute(pool.get(), attribute, values) == CUDA_SUCCESS);
    CHECK(values[0] == 0);
  }
  for (const auto attribute :
       {CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH,
        CU_MEMPOOL_ATTR_USED_MEM_CURRENT, CU_MEMPOOL_ATTR_USED_MEM_HIGH}) {
    CHECK(pool.bytes(attribute) == 0);
  }
  pool.keep(123);
  CHECK(pool.bytes(CU_MEMPOOL_ATTR_RELEASE_THRESHOLD) == 123);
}

TEST_CASE("a pool's usage cannot be set, and its high marks can only be reset") {
  const CurrentContext context;
  Pool pool;
  const CUdeviceptr address = pool.allocate(kMiB, nullptr);
  REQUIRE(cuMemFree(address) == CUDA_SUCCESS);
  const auto set = [&](CUmemPool_attribute attribute, cuuint64_t value) {
    return cuMemPoolSetAttribute(pool.get(), attribute, &value);
  };
  CHECK(pool.bytes(CU_MEMPOOL_ATTR_USED_MEM_HIGH) == kMiB);
  CHECK(pool.bytes(CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH) >= kMiB);
  CHECK(set(CU_MEMPOOL_ATTR_USED_MEM_HIGH, 1) == CUDA_ERROR_INVALID_VALUE);
  CHECK(set(CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH, 1) == CUDA_ERROR_INVALID_VALUE);
  CHECK(set(CU_MEMPOOL_ATTR_USED_MEM_CURRENT, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(set(CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(set(CU_MEMPOOL_ATTR_USED_MEM_HIGH, 0) == CUDA_SUCCESS);
  CHECK(pool.bytes(CU_MEMPOOL_ATTR_USED_MEM_HIGH) == 0);
  REQUIRE(cuCtxSynchronize() == CUDA_SUCCESS);  // reserved memory is released
  CHECK(pool.bytes(CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH) >= kMiB);
  CHECK(set(CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH, 0) == CUDA_SUCCESS);
  CHECK(pool.bytes(CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH) == 0);
  CHECK(cuMemPoolSetAttribute(pool.get(), CU_MEMPOOL_ATTR_USED_MEM_HIGH, nullptr) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemPoolGetAttribute(pool.get(), CU_MEMPOOL_ATTR_USED_MEM_HIGH, nullptr) == CUDA_ERROR_INVALID_VALUE);
  CHECK(set(static_cast<CUmemPool_attribute>(0), 0) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("a pool is always accessible to its own device, and to others as granted") {
  start_driver();
  int count = 0;
  REQUIRE(cuDeviceGetCount(&count) == CUDA_SUCCESS);
  const Pool pool;
  const auto access = [&](int device) {
    CUmemLocation location = {CU_MEM_LOCATION_TYPE_DEVICE, device};
    CUmemAccess_flags flags = CU_MEM_ACCESS_FLAGS_PROT_MAX;
    REQUIRE(cuMemPoolGetAccess(&flags, pool.get(), &location) == CUDA_SUCCESS);
    return flags;
  };
  const auto set = [&](int device, CUmemAccess_flags flags) {
    const CUmemAccessDesc wish = {{CU_MEM_LOCATION_TYPE_DEVICE, device}, flags};
    return cuMemPoolSetAccess(pool.get(), &wish, 1);
  };
  CHECK(access(0) == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
  CHECK(set(0, CU_MEM_ACCESS_FLAGS_PROT_READWRITE) == CUDA_SUCCESS);
  CHECK(set(0, CU_MEM_ACCESS_FLAGS_PROT_NONE) == CUDA_ERROR_INVALID_DEVICE);  // H200, driver 580.159
  CHECK(access(0) == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
  CHECK(set(99, CU_MEM_ACCESS_FLAGS_PROT_READWRITE) == CUDA_ERROR_INVALID_DEVICE);  // H200, driver 580.159
  CHECK(cuMemPoolSetAccess(pool.get(), nullptr, 1) == CUDA_ERROR_INVALID_VALUE);
  if (count < 2) return;
  CHECK(access(1) == CU_MEM_ACCESS_FLAGS_PROT_NONE);
  CHECK(set(1, CU_MEM_ACCESS_FLAGS_PROT_READWRITE) == CUDA_SUCCESS);
  CHECK(access(1) == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
  CHECK(set(1, CU_MEM_ACCESS_FLAGS_PROT_NONE) == CUDA_SUCCESS);
  CHECK(access(1) == CU_MEM_ACCESS_FLAGS_PROT_NONE);
}

}  // namespace
}  // namespace simcuda::conformance
