// Figures of devices as NVML reports them, from a process that is started for it: the driver's libraries stay out of
// this one, and a simulated driver is found where the command would find it.
// Layer: cli. Threads: one. Owns: the process, which ends with it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/launch/environment_block.h"

namespace ration::cli {

// A process on a device. `pid` is that of NVML's namespace, the host's.
struct NvmlHolder {
  int pid = 0;
  std::uint64_t bytes = 0;  // 0: not known
};

struct DeviceFigures {
  std::string uuid, name;
  std::optional<int> index;  // as nvidia-smi has it; none for a part of a device (MIG)
  struct Memory {
    std::uint64_t total = 0, free = 0, used = 0;  // bytes, without what the driver reserves
  };
  std::optional<Memory> memory;
  std::vector<NvmlHolder> holders;
  std::optional<unsigned> utilisation;  // percent of the last sample in which a kernel ran
  std::optional<unsigned> temperature;  // degrees Celsius
};

class NvmlProcess {
 public:
  NvmlProcess();  // in the environment of this process
  explicit NvmlProcess(EnvironmentBlock environment) : environment_(std::move(environment)) {}
  ~NvmlProcess();
  NvmlProcess(const NvmlProcess &) = delete;
  NvmlProcess &operator=(const NvmlProcess &) = delete;

  // Nothing: NVML is not installed, or does not know the device.
  std::optional<DeviceFigures> of(const std::string &uuid);
  // All of the machine, and those with these UUIDs. A divided device (MIG) is left out for its parts.
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

// The started process: answers each line of its stdin, blanks between UUIDs or "*", with one line of JSON. Returns the
// exit status.
int answer_figures();

// Of a handle of NVML in this process.
std::vector<NvmlHolder> holders_on(void *nvml, void *device);
bool is_divided(void *nvml, void *device);  // MIG

}  // namespace ration::cli
