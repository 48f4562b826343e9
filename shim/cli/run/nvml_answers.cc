// NVML in the process that is started to ask it, and the answers of that process. Layer: cli.
#include <dlfcn.h>

#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "cli/base/exit_status.h"
#include "cli/run/device_figures.h"

namespace ration::cli {

namespace {

using nlohmann::json;

constexpr std::size_t kUuidLength = 96;  // NVML_DEVICE_UUID_V2_BUFFER_SIZE
constexpr std::size_t kNameLength = 96;  // NVML_DEVICE_NAME_V2_BUFFER_SIZE
constexpr int kTooMany = 7;              // NVML_ERROR_INSUFFICIENT_SIZE
constexpr unsigned kNvmlHoldersAtOnce = 512;
constexpr unsigned kMostNvmlHolders = 65536;

// Calls NVML's functions by name, because a version may lack one.
class Nvml {
 public:
  explicit Nvml(void *library) : library_(library) {}
  // Also false if NVML has no such function.
  template <class... Arguments>
  [[nodiscard]] bool asked(const char *name, Arguments... arguments) const {
    const auto function = reinterpret_cast<int (*)(Arguments...)>(dlsym(library_, name));
    return function != nullptr && function(arguments...) == 0;
  }
  [[nodiscard]] json figures_of(void *device) const;
  [[nodiscard]] json all_devices() const;

 private:
  void add_memory(void *device, json &row) const;

  void *library_;
};

void Nvml::add_memory(void *device, json &row) const {
  struct {
    unsigned version;
    unsigned long long total, reserved, free, used;
  } newer{};
  struct {
    unsigned long long total, free, used;
  } older{};
  newer.version = static_cast<unsigned>(sizeof(newer)) | 2U << 24U;
  if (asked("nvmlDeviceGetMemoryInfo_v2", device, static_cast<void *>(&newer))) {
    row.update({{"total", newer.total - newer.reserved}, {"free", newer.free}, {"used", newer.used}});
  } else if (asked("nvmlDeviceGetMemoryInfo", device, static_cast<void *>(&older))) {
    row.update({{"total", older.total}, {"free", older.free}, {"used", older.used}});
  }
}

json Nvml::figures_of(void *device) const {
  json row = json::object();
  char uuid[kUuidLength] = {};
  char name[kNameLength] = {};
  unsigned index = 0;
  unsigned is_part = 0;
  if (asked("nvmlDeviceGetUUID", device, static_cast<char *>(uuid), static_cast<unsigned>(sizeof(uuid)))) {
    row["uuid"] = uuid;
  }
  if (asked("nvmlDeviceGetName", device, static_cast<char *>(name), static_cast<unsigned>(sizeof(name)))) {
    row["name"] = name;
  }
  (void)asked("nvmlDeviceIsMigDeviceHandle", device, &is_part);
  if (is_part == 0 && asked("nvmlDeviceGetIndex", device, &index)) {
    row["index"] = index;
  }
  add_memory(device, row);
  struct {
    unsigned gpu, memory;
  } utilisation{};
  if (asked("nvmlDeviceGetUtilizationRates", device, static_cast<void *>(&utilisation))) {
    row["utilisation"] = utilisation.gpu;
  }
  if (unsigned degrees = 0; asked("nvmlDeviceGetTemperature", device, 0U, &degrees)) {  // NVML_TEMPERATURE_GPU
    row["temperature"] = degrees;
  }
  row["holders"] = json::array();
  for (const NvmlHolder &each : holders_on(library_, device)) {
    row["holders"].push_back({each.pid, each.bytes});
  }
  return row;
}

json Nvml::all_devices() const {
  json rows = json::array();
  unsigned count = 0;
  (void)asked("nvmlDeviceGetCount_v2", &count);
  for (unsigned i = 0; i < count; ++i) {
    void *device = nullptr;
    if (!asked("nvmlDeviceGetHandleByIndex_v2", i, &device)) {
      continue;
    }
    unsigned parts = 0;
    if (!is_divided(library_, device)) {
      rows.push_back(figures_of(device));
      continue;
    }
    (void)asked("nvmlDeviceGetMaxMigDeviceCount", device, &parts);
    for (unsigned part = 0; part < parts; ++part) {
      if (void *of_part = nullptr; asked("nvmlDeviceGetMigDeviceHandleByIndex", device, part, &of_part)) {
        rows.push_back(figures_of(of_part));
      }
    }
  }
  return rows;
}

}  // namespace

std::vector<NvmlHolder> holders_on(void *nvml, void *device) {
  struct Info {
    unsigned pid;
    unsigned long long bytes;
    unsigned instance[2];
  };
  const auto infos_of =
      reinterpret_cast<int (*)(void *, unsigned *, Info *)>(dlsym(nvml, "nvmlDeviceGetComputeRunningProcesses_v3"));
  std::vector<Info> infos(kNvmlHoldersAtOnce);
  unsigned count = kNvmlHoldersAtOnce;
  int result = infos_of != nullptr ? infos_of(device, &count, infos.data()) : -1;
  if (result == kTooMany) {
    count = std::min(count, kMostNvmlHolders);
    infos.resize(count);
    result = infos_of(device, &count, infos.data());
  }
  std::vector<NvmlHolder> holders;
  for (unsigned i = 0; result == 0 && i < std::min<std::size_t>(count, infos.size()) && infos[i].pid != 0; ++i) {
    // All bits set means that the value is not available.
    holders.push_back({static_cast<int>(infos[i].pid), infos[i].bytes == ~0ULL ? 0 : infos[i].bytes});
  }
  return holders;
}

bool is_divided(void *nvml, void *device) {
  unsigned now = 0;
  unsigned later = 0;
  return Nvml(nvml).asked("nvmlDeviceGetMigMode", device, &now, &later) && now == 1;
}

int answer_figures() {
  void *const library = dlopen("libnvidia-ml.so.1", RTLD_NOW);
  if (library == nullptr) {
    return kOurError;
  }
  const Nvml nvml(library);
  if (!nvml.asked("nvmlInit_v2")) {
    return kOurError;
  }
  for (std::string line; std::getline(std::cin, line);) {
    json rows = json::array();
    std::istringstream words(line);
    for (std::string uuid; words >> uuid;) {
      const auto has_it = [&uuid](const json &row) { return row.value("uuid", "") == uuid; };
      void *device = nullptr;
      if (uuid == "*") {
        rows = nvml.all_devices();
      } else if (std::none_of(rows.begin(), rows.end(), has_it) &&
                 nvml.asked("nvmlDeviceGetHandleByUUID", uuid.c_str(), &device)) {
        rows.push_back(nvml.figures_of(device));
      }
    }
    std::cout << rows.dump(-1, ' ', true, json::error_handler_t::replace) << std::endl;
  }
  return 0;
}

}  // namespace ration::cli
