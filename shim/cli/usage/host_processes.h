// Processes of containers as this PID namespace has them: their IDs here, and their containers' names.
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
  int pid = 0;            // here
  std::string container;  // its host name, where that is not this machine's; else what its cgroup calls it; else empty
};

// A look at /proc at the first question about another PID namespace. Only processes whose namespace may be read are
// found: root finds those of every container of the machine, others their own.
class HostProcesses {
 public:
  // None: it is of this namespace, or cannot be found here.
  HostProcess find(const ledger::ProcessIdentity &process);

 private:
  void look();

  bool looked_ = false;
  std::uint64_t own_namespace_ = 0;
  std::map<std::pair<std::uint64_t, int>, int> found_;  // by namespace and ID in it
};

// The name in a line of cgroup(7), as Docker, Podman, containerd and CRI-O write it: the first twelve digits of the
// container's ID. Empty: the line names none.
std::string container_in_cgroup(std::string_view line);

}  // namespace ration::cli
