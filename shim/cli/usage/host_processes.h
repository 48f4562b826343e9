// Container processes as seen from this PID namespace: their IDs here, and the names of their containers.
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
  std::string container;  // its host name, if that is not ours; else the name in its cgroup; else empty
};

// Reads /proc when first asked about a process of another PID namespace. Finds only processes whose namespace this user
// may read: root finds the processes of all containers on the machine, other users only their own.
class HostProcesses {
 public:
  // The result's `pid` is 0 if the process is in this namespace or cannot be found here.
  HostProcess find(const ledger::ProcessIdentity &process);

 private:
  void look();

  bool looked_ = false;
  std::uint64_t own_namespace_ = 0;
  std::map<std::pair<std::uint64_t, int>, int> found_;  // by namespace and the ID in that namespace
};

// The container's name in a line of cgroup(7), as Docker, Podman, containerd and CRI-O write it: the first twelve
// digits of its ID. Empty if the line names no container.
std::string container_in_cgroup(std::string_view line);

}  // namespace ration::cli
