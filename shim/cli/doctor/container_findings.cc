// Finds out whether this is a container, and what that means for the state folder. Layer: cli.
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "cli/doctor/checkup.h"
#include "cli/usage/snapshot.h"
#include "config/values/quotes.h"

namespace ration::cli::doctor {

namespace {

constexpr std::uint64_t kInitialPidNamespace = 0xeffffffc;  // PROC_PID_INIT_INO of the kernel's proc_ns.h

// A line of /proc/self/mountinfo, proc_pid_mountinfo(5).
struct Mount {
  std::string root, type, source;
};

// The last mount at that point, which hides those before it.
Mount mount_at(const std::string &point) {
  Mount found;
  std::ifstream lines("/proc/self/mountinfo");
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string word;
    std::string root;
    std::string where;
    words >> word >> word >> word >> root >> where;
    if (where != point) {
      continue;
    }
    while (words >> word && word != "-") {
    }
    found.root = root;
    words >> found.type >> found.source;
  }
  return found;
}

dev_t device_of(const std::filesystem::path &path) {
  struct stat status {};
  return stat(path.c_str(), &status) == 0 ? status.st_dev : 0;
}

// True if the root folder is a container's own: made of layers, or a folder within the host's file system.
bool is_root_own(const Mount &root) {
  constexpr const char *kSubvolumes = "btrfs";  // even a host's own root may be a folder there
  return root.type == "overlay" || (root.root != "/" && root.type != kSubvolumes);
}

// True if /dev/shm is the container's own. Docker, Podman, containerd and Kubernetes name a /dev/shm that they make for
// a container "shm"; if it is the host's, or `unshare` left it in place, it has the host's name.
bool is_shared_memory_own(const Mount &root, const Mount &shared_memory) {
  return shared_memory.source == "shm" || (is_root_own(root) && root.type != "overlay");
}

// `path` itself if it exists, otherwise the nearest folder above it that does.
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
  if (own == kInitialPidNamespace) {
    return found;
  }
  const std::string folder = checkup.settings.state_folder();
  const dev_t device = device_of(existing(folder));
  const Mount root = mount_at("/");
  const bool is_own = device == device_of("/")          ? is_root_own(root)
                      : device == device_of("/dev/shm") ? is_shared_memory_own(root, mount_at("/dev/shm"))
                                                        : false;  // mounted on purpose
  if (is_own) {
    found.push_back({Check::container_books,
                     "the state folder " + config::printable(folder) +
                         " seems to be this container's alone: groups, their limits and ration ps end at it",
                     {}});
  }
  return found;
}

}  // namespace ration::cli::doctor
