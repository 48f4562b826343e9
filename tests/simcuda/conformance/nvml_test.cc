// NVML beside the driver: what monitors ask for, by the names that they look up.
#include <dlfcn.h>
#include <nvml.h>
#include <unistd.h>

#include <cstring>
#include <iostream>
#include <string>
#include <vector>

#include "tests/simcuda/conformance/fixture.h"

namespace simcuda::conformance {
namespace {

void *library() {
  static void *const opened = ::dlopen("libnvidia-ml.so.1", RTLD_NOW);
  REQUIRE(opened != nullptr);
  return opened;
}

template <class Function>
Function find(const char *name) {
  return reinterpret_cast<Function>(::dlsym(library(), name));
}

#define NVML(function) find<decltype(&::function)>(#function)

class Monitor {
 public:
  Monitor() { REQUIRE(NVML(nvmlInit_v2)() == NVML_SUCCESS); }
  ~Monitor() { NVML(nvmlShutdown)(); }
  Monitor(const Monitor &) = delete;
  Monitor &operator=(const Monitor &) = delete;

  nvmlDevice_t device(unsigned index) const {
    nvmlDevice_t found = nullptr;
    REQUIRE(NVML(nvmlDeviceGetHandleByIndex_v2)(index, &found) == NVML_SUCCESS);
    return found;
  }
  // Of the simulator's two the second; a real machine may have one.
  nvmlDevice_t last_device() const {
    unsigned count = 0;
    REQUIRE(NVML(nvmlDeviceGetCount_v2)(&count) == NVML_SUCCESS);
    return device(count - 1);
  }
};

const char *const kWithoutAnswer[] = {
#define SIMCUDA_NVML(name) #name,
#include "tests/simcuda/nvml_not_supported.inc"
#undef SIMCUDA_NVML
};

TEST_CASE("NVML names the CUDA version that the driver reports, once it is initialised") {
  int driver = 0, first = 0, second = 0;
  REQUIRE(cuDriverGetVersion(&driver) == CUDA_SUCCESS);
  REQUIRE(NVML(nvmlSystemGetCudaDriverVersion) != nullptr);
  // H100, H200, driver 580.159: 1 before
  CHECK(NVML(nvmlSystemGetCudaDriverVersion)(&first) == NVML_ERROR_UNINITIALIZED);
  CHECK(NVML(nvmlSystemGetCudaDriverVersion_v2)(&second) == NVML_ERROR_UNINITIALIZED);
  CHECK(NVML(nvmlSystemGetCudaDriverVersion)(nullptr) == NVML_ERROR_UNINITIALIZED);
  const Monitor monitor;
  CHECK(NVML(nvmlSystemGetCudaDriverVersion)(&first) == NVML_SUCCESS);
  CHECK(NVML(nvmlSystemGetCudaDriverVersion_v2)(&second) == NVML_SUCCESS);
  CHECK(first == driver);
  CHECK(second == driver);
  CHECK(NVML(nvmlSystemGetCudaDriverVersion)(nullptr) == NVML_ERROR_INVALID_ARGUMENT);
}

TEST_CASE("a process with a context computes, and does not draw") {
  const CurrentContext context;
  const Monitor monitor;
  for (const char *name : {"nvmlDeviceGetComputeRunningProcesses_v2", "nvmlDeviceGetComputeRunningProcesses_v3"}) {
    INFO(name);
    std::vector<nvmlProcessInfo_t> found(256);
    unsigned count = static_cast<unsigned>(found.size()), own = 0;
    const auto running = find<decltype(&::nvmlDeviceGetComputeRunningProcesses_v3)>(name);
    REQUIRE(running != nullptr);
    REQUIRE(running(monitor.device(0), &count, found.data()) == NVML_SUCCESS);
    found.resize(count);
    for (const nvmlProcessInfo_t &one : found) own += one.pid == static_cast<unsigned>(::getpid()) ? 1 : 0;
    CHECK(own == 1);
  }
  for (const char *kind : {"Graphics", "MPSCompute"}) {
    for (const char *version : {"", "_v2", "_v3"}) {
      const std::string name = std::string("nvmlDeviceGet") + kind + "RunningProcesses" + version;
      INFO(name);
      const auto running = find<decltype(&::nvmlDeviceGetGraphicsRunningProcesses_v3)>(name.c_str());
      unsigned count = 1;
      nvmlProcessInfo_t room{};
      REQUIRE(running != nullptr);
      CHECK(running(monitor.device(0), &count, &room) == NVML_SUCCESS);
      CHECK(count == 0);
    }
  }
}

TEST_CASE("each version of the PCI information is a beginning of the newest, and no byte more is written") {
  const Monitor monitor;
  nvmlPciInfo_t newest{};
  REQUIRE(NVML(nvmlDeviceGetPciInfo_v3)(monitor.last_device(), &newest) == NVML_SUCCESS);
  if (simulator()) CHECK(std::string(newest.busIdLegacy) == "0000:02:00.0");
  const std::pair<const char *, std::size_t> versions[] = {
      {"nvmlDeviceGetPciInfo", offsetof(nvmlPciInfo_t, pciSubSystemId)},
      {"nvmlDeviceGetPciInfo_v2", offsetof(nvmlPciInfo_t, busId)}};
  for (const auto &[name, bytes] : versions) {
    INFO(name);
    unsigned char seen[sizeof(nvmlPciInfo_t)];
    std::memset(seen, 0x5a, sizeof(seen));
    const auto query = find<decltype(&::nvmlDeviceGetPciInfo_v3)>(name);
    REQUIRE(query != nullptr);
    CHECK(query(monitor.last_device(), reinterpret_cast<nvmlPciInfo_t *>(seen)) == NVML_SUCCESS);
    CHECK(std::memcmp(seen, &newest, bytes) == 0);
    for (std::size_t i = bytes; i < sizeof(seen); ++i) CHECK(seen[i] == 0x5a);
  }
}

TEST_CASE("a device is no slice of one, and has a minor number") {
  const Monitor monitor;
  unsigned slice = 1, minor = 0;
  REQUIRE(NVML(nvmlDeviceIsMigDeviceHandle) != nullptr);
  CHECK(NVML(nvmlDeviceIsMigDeviceHandle)(monitor.last_device(), &slice) == NVML_SUCCESS);
  CHECK(slice == 0);
  CHECK(NVML(nvmlDeviceGetMinorNumber)(monitor.last_device(), &minor) == NVML_SUCCESS);
  if (simulator()) CHECK(minor == 1);
}

TEST_CASE("queries of NVML without a simulated answer exist, and answer NOT_SUPPORTED") {
  if (!simulator()) return;
  const Monitor monitor;
  std::size_t covered = 0;
  for (const char *name : kWithoutAnswer) {
    INFO(name);
    const auto query = find<nvmlReturn_t (*)(nvmlDevice_t, void *, void *)>(name);
    REQUIRE(query != nullptr);
    const nvmlReturn_t answer = query(monitor.device(0), nullptr, nullptr);
    CHECK(answer == NVML_ERROR_NOT_SUPPORTED);
    covered += answer == NVML_ERROR_NOT_SUPPORTED ? 1 : 0;
  }
  std::cout << "covered: " << covered << " of " << std::size(kWithoutAnswer) << " queries without an answer\n";
}

TEST_CASE("a query without an answer is refused before NVML is initialised") {
  if (!simulator()) return;
  const auto temperature = find<nvmlReturn_t (*)()>("nvmlDeviceGetTemperature");
  REQUIRE(temperature != nullptr);
  CHECK(temperature() == NVML_ERROR_UNINITIALIZED);
}

}  // namespace
}  // namespace simcuda::conformance
