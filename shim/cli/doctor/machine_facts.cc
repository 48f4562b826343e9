#include "cli/doctor/machine_facts.h"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <system_error>

#include "cli/base/exit_status.h"
#include "cli/run/driver_probe.h"
#include "ledger/device_key.h"

namespace ration::cli::doctor {

namespace {

using Facts = nlohmann::json;

// Without one of these functions no limit is possible; any other may be missing.
constexpr const char *kNeeded[] = {"cuInit",        "cuDeviceGet",  "cuDeviceGetCount",
                                   "cuMemAlloc_v2", "cuMemFree_v2", "cuDeviceTotalMem_v2"};
constexpr std::size_t kMostHolders = 1000;  // so that the answer fits into a pipe

void print_step(const Facts &step) {
  std::cout << step.dump(-1, ' ', false, Facts::error_handler_t::replace) << std::endl;
}

// The path of the file of an open library.
std::string file_of(void *library) {
  link_map *map = nullptr;
  if (dlinfo(library, RTLD_DI_LINKMAP, static_cast<void *>(&map)) != 0 || map == nullptr) {
    return {};
  }
  std::error_code error;
  const std::filesystem::path file = std::filesystem::canonical(map->l_name, error);
  return error ? map->l_name : file.string();
}

template <class Function>
Function *function_of(void *library, const char *name) {
  return reinterpret_cast<Function *>(dlsym(library, name));
}

void answer_devices_of(void *driver) {
  const auto count_of = function_of<int(int *)>(driver, "cuDeviceGetCount");
  const auto device_at = function_of<int(int *, int)>(driver, "cuDeviceGet");
  const auto total_of = function_of<int(std::size_t *, int)>(driver, "cuDeviceTotalMem_v2");
  const auto name_of_device = function_of<int(char *, int, int)>(driver, "cuDeviceGetName");
  auto uuid_of = function_of<int(char *, int)>(driver, "cuDeviceGetUuid_v2");
  uuid_of = uuid_of != nullptr ? uuid_of : function_of<int(char *, int)>(driver, "cuDeviceGetUuid");
  int count = 0;
  if (count_of == nullptr || device_at == nullptr || total_of == nullptr || count_of(&count) != 0) {
    return;
  }
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    int device = 0;
    std::size_t total = 0;
    char uuid[16] = {};
    char name[256] = {};
    if (device_at(&device, ordinal) != 0 || total_of(&total, device) != 0) {
      continue;
    }
    const bool has_uuid = uuid_of != nullptr && uuid_of(uuid, device) == 0;
    if (name_of_device != nullptr) {
      (void)name_of_device(name, sizeof(name) - 1, device);
    }
    print_step(
        {{"device", ordinal}, {"total", total}, {"uuid", has_uuid ? ledger::uuid_text(uuid) : ""}, {"name", name}});
  }
}

void answer_driver() {
  void *const driver = dlopen("libcuda.so.1", RTLD_NOW);
  if (driver == nullptr) {
    const char *error = dlerror();
    print_step({{"driver", ""}, {"error", error != nullptr ? error : ""}});
    return;
  }
  Facts missing = Facts::array();
  for (const char *name : kNeeded) {
    if (dlsym(driver, name) == nullptr) {
      missing.push_back(name);
    }
  }
  print_step({{"driver", file_of(driver)}, {"missing", missing}});
  const auto initialise = function_of<int(unsigned)>(driver, "cuInit");
  if (initialise == nullptr) {
    return;
  }
  const int started = initialise(0);
  print_step({{"started", started}});
  int version = 0;
  const auto version_of = function_of<int(int *)>(driver, "cuDriverGetVersion");
  if (version_of != nullptr && version_of(&version) == 0) {
    print_step({{"version", version}});
  }
  if (started == 0) {
    answer_devices_of(driver);
  }
}

void answer_nvml_device(void *nvml, void *device) {
  const auto uuid_of = function_of<int(void *, char *, unsigned)>(nvml, "nvmlDeviceGetUUID");
  char uuid[96] = {};
  if (is_divided(nvml, device) && uuid_of != nullptr && uuid_of(device, uuid, sizeof(uuid)) == 0) {
    print_step({{"mig", uuid}});
  }
  const std::vector<NvmlHolder> holders = holders_on(nvml, device);
  for (std::size_t i = 0; i < std::min(holders.size(), kMostHolders); ++i) {
    print_step({{"pid", holders[i].pid}, {"bytes", holders[i].bytes}});
  }
}

void answer_nvml() {
  void *const nvml = dlopen("libnvidia-ml.so.1", RTLD_NOW);
  const auto initialise = nvml != nullptr ? function_of<int()>(nvml, "nvmlInit_v2") : nullptr;
  if (initialise == nullptr) {
    const char *error = dlerror();
    print_step({{"nvml", ""}, {"error", error != nullptr ? error : ""}});
    return;
  }
  if (const int started = initialise(); started != 0) {
    print_step({{"nvml", ""}, {"error", file_of(nvml) + " does not start: error " + std::to_string(started)}});
    return;
  }
  char version[96] = {};
  const auto version_of = function_of<int(char *, unsigned)>(nvml, "nvmlSystemGetDriverVersion");
  const bool known = version_of != nullptr && version_of(version, sizeof(version)) == 0;
  print_step({{"nvml", file_of(nvml)}, {"driver_version", known ? version : ""}});
  unsigned count = 0;
  const auto count_of = function_of<int(unsigned *)>(nvml, "nvmlDeviceGetCount_v2");
  const auto device_at = function_of<int(unsigned, void **)>(nvml, "nvmlDeviceGetHandleByIndex_v2");
  if (count_of == nullptr || device_at == nullptr || count_of(&count) != 0) {
    return;
  }
  for (unsigned i = 0; i < count; ++i) {
    void *device = nullptr;
    if (device_at(i, &device) == 0) {
      answer_nvml_device(nvml, device);
    }
  }
}

void take_step(const Facts &step, MachineFacts &facts) {
  DriverFacts &driver = facts.driver;
  NvmlFacts &nvml = facts.nvml;
  if (step.contains("driver")) {
    driver.path = step["driver"];
    driver.error = step.value("error", "");
    driver.missing = step.value("missing", std::vector<std::string>{});
  } else if (step.contains("started")) {
    driver.started = step["started"].get<int>();
  } else if (step.contains("version")) {
    driver.version = step["version"];
  } else if (step.contains("device")) {
    driver.devices.push_back({step["device"], step["uuid"], step["total"]});
    driver.names.push_back(step["name"]);
  } else if (step.contains("nvml")) {
    nvml.path = step["nvml"];
    nvml.error = step.value("error", "");
    nvml.driver_version = step.value("driver_version", "");
  } else if (step.contains("mig")) {
    nvml.mig_uuids.push_back(step["mig"]);
  } else if (step.contains("pid")) {
    nvml.holders.push_back({step["pid"], step["bytes"]});
  }
}

}  // namespace

MachineFacts ask_machine(const EnvironmentBlock &environment) {
  MachineFacts facts;
  for (const char *question : {"machine", "monitor"}) {
    std::istringstream lines(ask_without_library(environment, question));
    for (std::string line; std::getline(lines, line);) {
      const Facts step = Facts::parse(line, nullptr, false);
      if (step.is_object()) {  // a process that was killed may leave an incomplete line
        take_step(step, facts);
      }
    }
  }
  return facts;
}

int answer_machine() {
  answer_driver();
  return std::cout ? 0 : kOurError;
}

int answer_monitor() {
  answer_nvml();
  return std::cout ? 0 : kOurError;
}

}  // namespace ration::cli::doctor
