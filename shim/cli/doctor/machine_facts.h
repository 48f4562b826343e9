// What this machine's driver and NVML say, asked by a process that is started for it, without the library: a driver
// that crashes or hangs ends that process alone. Layer: cli. Threads: values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/launch/environment_block.h"
#include "cli/run/device_figures.h"
#include "config/settings.h"

namespace ration::cli::doctor {

struct DriverFacts {
  std::string path;                  // that the dynamic linker chose, with links resolved; empty: none could be loaded
  std::string error;                 // why not
  std::vector<std::string> missing;  // functions without which nothing can be limited
  std::optional<int> started;        // what cuInit returned; none: it is missing, hung or crashed
  int version = 0;                   // of CUDA, as 13000; 0: unknown
  std::vector<config::DeviceIdentity> devices;
  std::vector<std::string> names;  // of `devices`
};

struct NvmlFacts {
  std::string path, error;
  std::string driver_version;          // of the kernel's driver: "580.65.06"
  std::vector<std::string> mig_uuids;  // of GPUs that are split
  std::vector<NvmlHolder> holders;     // of device memory
};

struct MachineFacts {
  DriverFacts driver;
  NvmlFacts nvml;
};

MachineFacts ask_machine(const EnvironmentBlock &environment);

// The started processes, for the driver and for NVML: print a line for each step, so that one that never ends is known.
// Return the exit status.
int answer_machine();
int answer_monitor();

}  // namespace ration::cli::doctor
