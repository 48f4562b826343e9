// Free memory of devices as NVML reports it, from a process that is started for it: the driver's libraries stay out of
// this one, and a simulated driver is found where the command would find it.
// Layer: cli. Threads: one. Owns: the process, which ends with it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

#include "cli/run/environment_block.h"

namespace ration::cli {

class FreeMemory {
 public:
  explicit FreeMemory(EnvironmentBlock environment);
  ~FreeMemory();
  FreeMemory(const FreeMemory &) = delete;
  FreeMemory &operator=(const FreeMemory &) = delete;

  // Bytes; nullopt: NVML is not installed, or does not know the device.
  std::optional<std::uint64_t> of(const std::string &uuid);

 private:
  pid_t process_ = -1;
  int questions_ = -1, answers_ = -1;
};

// The started process: answers each line of its stdin, a UUID, with one number, or an empty line. Returns the exit
// status.
int answer_free_memory();

}  // namespace ration::cli
