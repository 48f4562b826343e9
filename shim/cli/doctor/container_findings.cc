// Whether this is a container, and what that means for the books. Layer: cli.
#include <sys/stat.h>

#include <filesystem>

#include "cli/doctor/checkup.h"
#include "cli/usage/snapshot.h"
#include "config/values/quotes.h"

namespace ration::cli::doctor {

namespace {

constexpr std::uint64_t kInitialPidNamespace = 0xeffffffc;  // PROC_PID_INIT_INO of the kernel's proc_ns.h

dev_t device_of(const std::filesystem::path &path) {
  struct stat status {};
  return stat(path.c_str(), &status) == 0 ? status.st_dev : 0;
}

// The nearest folder above `path`, or itself, that exists.
std::filesystem::path existing(std::filesystem::path path) {
  struct stat status {};
  while (path.has_relative_path() && stat(path.c_str(), &status) != 0) {
    path = path.parent_path();
  }
  return path;
}

}  // namespace

Findings check_container(const Checkup &checkup) {
  Findings found;
  const std::uint64_t own = own_pid_namespace();
  if (own == 0) {
    found.push_back({Check::unchecked, "whether this is a container: /proc/self/ns/pid cannot be read", {}});
    return found;
  }
  if (own == kInitialPidNamespace) {
    return found;
  }
  found.push_back({Check::container_processes,
                   "this is a PID namespace of its own, as a container's: ration ps here shows its processes alone",
                   {}});
  // A folder that several containers mount is neither on the root file system nor on the container's own /dev/shm.
  const std::string folder = checkup.settings.state_folder();
  const dev_t device = device_of(existing(folder));
  if (device == device_of("/") || device == device_of("/dev/shm")) {
    found.push_back({Check::container_books,
                     "the state folder " + config::printable(folder) +
                         " seems to be this container's alone: groups, their limits and ration ps end at it",
                     {}});
  }
  return found;
}

}  // namespace ration::cli::doctor
