// Identity of a process and of its address space. Layer: ledger. Threads: any. Owns: one page of the process, for good.
#pragma once

#include <cstdint>
#include <string>

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

// Identifies this address space, so that a forked child can tell what it did not inherit from its parent. Differs
// between parent and child, however many forks lie between them. A process ID may be equal: across PID
// namespaces, and after it wraps around.
std::uint64_t this_address_space();

}  // namespace ration::ledger
