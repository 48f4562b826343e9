// How this PID namespace sees the processes of containers: their IDs here, and the names of their containers.
// Layer: cli. Threads: values; one thread looks.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "ledger/process_identity.h"

namespace ration::cli {

struct HostProcess {
  int pid = 0;            // its ID in this PID namespace
  std::string container;  // its host name, if not this machine's; else the name in its cgroup; else empty
};

// Reads /proc when first asked about another PID namespace. Finds only processes whose namespace may be read: root
// finds the processes of all containers of the machine, other users only their own.
class HostProcesses {
 public:
  // `pid` 0 if the process is of this namespace or cannot be found here.
  HostProcess find(const ledger::ProcessIdentity &process);

 private:
  void look();

  bool looked_ = false;
  std::uint64_t own_namespace_ = 0;
  std::map<std::pair<std::uint64_t, int>, int> found_;  // by namespace, and the ID in that namespace
};

// The container's name in a line of cgroup(7), as Docker, Podman, containerd and CRI-O write it: the first twelve
// digits of its ID. Empty if the line names none.
std::string container_in_cgroup(std::string_view line);

}  // namespace ration::cli
