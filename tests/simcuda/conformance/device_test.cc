// Devices: identity and attributes; errors by name.
#include <cstring>
#include <set>
#include <string>

#include "tests/simcuda/conformance/fixture.h"

namespace simcuda::conformance {
namespace {

TEST_CASE("every device attribute has a value") {
  start_driver();
  int value = 0, answered = 0;
  for (int i = 1; i < CU_DEVICE_ATTRIBUTE_MAX; ++i) {
    if (cuDeviceGetAttribute(&value, static_cast<CUdevice_attribute>(i), 0) == CUDA_SUCCESS) ++answered;
  }
  if (simulator()) CHECK(answered == CU_DEVICE_ATTRIBUTE_MAX - 1);
  REQUIRE(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 0) == CUDA_SUCCESS);
  CHECK(value == 32);
  REQUIRE(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 0) == CUDA_SUCCESS);
  CHECK(value == 1);
  CHECK(cuDeviceGetAttribute(nullptr, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_WARP_SIZE, -1) == CUDA_ERROR_INVALID_DEVICE);
}

TEST_CASE("devices differ in UUID and bus address, and can be looked up by bus address") {
  start_driver();
  int count = 0;
  REQUIRE(cuDeviceGetCount(&count) == CUDA_SUCCESS);
  REQUIRE(count >= 1);
  std::set<std::string> uuids, buses;
  for (int i = 0; i < count; ++i) {
    CUdevice device = -1, found = -1;
    CUuuid uuid = {};
    char bus[32] = "", name[64] = "";
    REQUIRE(cuDeviceGet(&device, i) == CUDA_SUCCESS);
    REQUIRE(cuDeviceGetUuid(&uuid, device) == CUDA_SUCCESS);
    REQUIRE(cuDeviceGetPCIBusId(bus, sizeof bus, device) == CUDA_SUCCESS);
    REQUIRE(cuDeviceGetByPCIBusId(&found, bus) == CUDA_SUCCESS);
    REQUIRE(cuDeviceGetName(name, sizeof name, device) == CUDA_SUCCESS);
    CHECK(found == device);
    CHECK(std::strlen(name) > 0);
    uuids.insert(std::string(uuid.bytes, sizeof uuid.bytes));
    buses.insert(bus);
  }
  CHECK(uuids.size() == static_cast<std::size_t>(count));
  CHECK(buses.size() == static_cast<std::size_t>(count));
  CUdevice none = 5;
  CHECK(cuDeviceGet(&none, count) == CUDA_ERROR_INVALID_DEVICE);
  CHECK(cuDeviceGet(&none, -1) == CUDA_ERROR_INVALID_DEVICE);
}

TEST_CASE("a name that does not fit is truncated and terminated") {
  start_driver();
  char name[4] = {'x', 'x', 'x', 'x'};
  REQUIRE(cuDeviceGetName(name, sizeof name, 0) == CUDA_SUCCESS);
  CHECK(name[3] == '\0');
  CHECK(cuDeviceGetName(nullptr, 4, 0) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("the driver returns its version, and can be initialised again") {
  int version = 0;
  REQUIRE(cuDriverGetVersion(&version) == CUDA_SUCCESS);
  CHECK(version >= 12000);
  start_driver();
  CHECK(cuInit(0) == CUDA_SUCCESS);
  CHECK(cuInit(1) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("errors have names and texts") {
  const char *text = nullptr;
  REQUIRE(cuGetErrorName(CUDA_ERROR_OUT_OF_MEMORY, &text) == CUDA_SUCCESS);
  CHECK(std::string(text) == "CUDA_ERROR_OUT_OF_MEMORY");
  REQUIRE(cuGetErrorString(CUDA_ERROR_OUT_OF_MEMORY, &text) == CUDA_SUCCESS);
  CHECK(std::string(text) == "out of memory");
  CHECK(cuGetErrorName(static_cast<CUresult>(998), &text) == CUDA_ERROR_INVALID_VALUE);
  CHECK(text == nullptr);
}

TEST_CASE("each pair of peers can be enabled once") {
  start_driver();
  int count = 0, can = 0;
  REQUIRE(cuDeviceGetCount(&count) == CUDA_SUCCESS);
  if (count < 2 || cuDeviceCanAccessPeer(&can, 0, 1) != CUDA_SUCCESS || can == 0) return;
  const CurrentContext there(1);
  const CurrentContext here(0);
  CHECK(cuCtxDisablePeerAccess(there.get()) == CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
  CHECK(cuCtxEnablePeerAccess(there.get(), 0) == CUDA_SUCCESS);
  CHECK(cuCtxEnablePeerAccess(there.get(), 0) == CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
  CHECK(cuCtxDisablePeerAccess(there.get()) == CUDA_SUCCESS);
}

}  // namespace
}  // namespace simcuda::conformance
