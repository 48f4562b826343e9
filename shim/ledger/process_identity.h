// The identity of a process. Layer: ledger. Threads: any.
#pragma once

#include <cstdint>
#include <string>

#include "base/address_space.h"

namespace ration::ledger {

// `identity` is a random number, the same in every group of the process. The other fields are for display.
struct ProcessIdentity {
  std::uint64_t identity = 0;
  int pid = 0;  // in its own PID namespace
  std::uint32_t uid = 0;
  std::uint64_t pid_namespace = 0;
  std::uint64_t start_unix_ns = 0;
  std::string program;
};

ProcessIdentity this_process();

// Comes from the kernel or, if the kernel's generator is not ready yet, from the process ID and the time.
std::uint64_t random_number();

using ration::this_address_space;

}  // namespace ration::ledger
