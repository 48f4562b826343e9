// Facts that this machine's driver and NVML report. Helper processes without the library query them, so a driver that
// crashes or hangs affects only a helper. Layer: cli. Threads: values.
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
  // The path of the library that the dynamic linker chose, with symbolic links resolved; empty: none could be loaded.
  std::string path;
  std::string error;                 // why no library could be loaded
  std::vector<std::string> missing;  // the missing functions without which no limit can be enforced
  std::optional<int> started;        // the result of cuInit; nullopt: it is missing, hung or crashed
  int version = 0;                   // the CUDA version, such as 13000; 0: unknown
  std::vector<config::DeviceIdentity> devices;
  std::vector<std::string> names;  // the devices' names, in the same order
};

struct NvmlFacts {
  std::string path, error;
  std::string driver_version;          // the kernel driver's version: "580.65.06"
  std::vector<std::string> mig_uuids;  // the UUIDs of MIG devices, on GPUs that are partitioned
  std::vector<NvmlHolder> holders;     // the processes that hold device memory
};

struct MachineFacts {
  DriverFacts driver;
  NvmlFacts nvml;
};

MachineFacts ask_machine(const EnvironmentBlock &environment);

// These run in the helper processes. One queries the driver, the other NVML. Each prints a line for every step, to show
// which step never ended, and returns the exit status.
int answer_machine();
int answer_monitor();

}  // namespace ration::cli::doctor
