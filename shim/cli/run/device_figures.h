// Figures about devices from NVML. A separate process asks NVML, so that the driver's libraries are not loaded into
// this process, and so that a simulated driver is found where the command would find it.
// Layer: cli. Threads: one. Owns: that process, which the destructor ends.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/launch/environment_block.h"

namespace ration::cli {

// A process on a device. `pid` is its ID in NVML's PID namespace, which is the host's.
struct NvmlHolder {
  int pid = 0;
  std::uint64_t bytes = 0;  // 0: unknown
};

struct DeviceFigures {
  std::string uuid, name;
  std::optional<int> index;  // the number that nvidia-smi shows; none for a MIG device
  struct Memory {
    std::uint64_t total = 0, free = 0, used = 0;  // in bytes, without the driver's reserve
  };
  std::optional<Memory> memory;
  std::vector<NvmlHolder> holders;
  std::optional<unsigned> utilisation;  // percentage of the last sample period during which a kernel ran
  std::optional<unsigned> temperature;  // degrees Celsius
};

class NvmlProcess {
 public:
  NvmlProcess();  // uses this process's environment
  explicit NvmlProcess(EnvironmentBlock environment) : environment_(std::move(environment)) {}
  ~NvmlProcess();
  NvmlProcess(const NvmlProcess &) = delete;
  NvmlProcess &operator=(const NvmlProcess &) = delete;

  // nullopt if NVML is not installed or does not know the device.
  std::optional<DeviceFigures> of(const std::string &uuid);
  // All devices of the machine, plus the devices with these UUIDs. A partitioned GPU is replaced by its MIG devices.
  std::vector<DeviceFigures> all_and(const std::vector<std::string> &uuids);

 private:
  void start();
  void stop();
  std::vector<DeviceFigures> ask(const std::string &line);

  EnvironmentBlock environment_;
  bool was_started_ = false;
  pid_t process_ = -1;
  int questions_ = -1, answers_ = -1;
};

// Runs in the separate process. Each line of stdin holds "*" or UUIDs separated by blanks; answers it with one line of
// JSON. Returns the exit status.
int answer_figures();

// `device`: a handle from the NVML that this process has loaded.
std::vector<NvmlHolder> holders_on(void *nvml, void *device);
bool is_divided(void *nvml, void *device);  // true if MIG partitions the device

}  // namespace ration::cli
