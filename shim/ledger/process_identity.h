// Identity of a process. Layer: ledger. Threads: any.
#pragma once

#include <cstdint>
#include <string>

#include "base/address_space.h"

namespace ration::ledger {

// For display, except `identity`: it is random and the same in every group of the process.
struct ProcessIdentity {
  std::uint64_t identity = 0;
  int pid = 0;  // in its own PID namespace
  std::uint32_t uid = 0;
  std::uint64_t pid_namespace = 0;
  std::uint64_t start_unix_ns = 0;
  std::string program;
};

ProcessIdentity this_process();

// From the kernel, or, before its generator is ready, from the process ID and the time.
std::uint64_t random_number();

using ration::this_address_space;

}  // namespace ration::ledger
